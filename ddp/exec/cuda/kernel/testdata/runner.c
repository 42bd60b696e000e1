/* Runner runs compiled kernels for the tests: on memory that it shares with them, at
 * the address that they are told of. It reads commands from its input,
 *
 *   run OBJECT ENTRY GRID BLOCK ORDER BYTES PIECES\n, the bytes of the argument, and the pieces
 *
 * and answers each with a line: ok, or what is wrong. Pieces are what of that memory the kernel
 * may touch, two u64 each: where one begins, and how many bytes it has. Its upper bit says
 * that they may be written, too. With no pieces the kernel may touch everything.
 *
 * A kernel that is compiled with gcc's -fsanitize=kernel-address, and all accesses by calls,
 * calls what is below for each of them; one that touches what it may not, or what lies beside
 * memory that a block shares, ends the process with a sentence. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct shim_calls;
extern const struct shim_calls shim_calls; /* cuda_shim.c */

typedef void run(unsigned, unsigned, int, const void *);

static void *symbol(void *object, const char *entry, const char *what) {
	char name[400];
	snprintf(name, sizeof name, "%s__%s", entry, what);
	return dlsym(object, name);
}

/* piece is memory from at on: of size bytes, of which those from first on, used, may be
 * touched. */
struct piece {
	uintptr_t at;
	size_t size;
};

enum { most = 4096 };
static const uint64_t writable = 1ULL << 63;
static struct piece pieces[most], all;
static struct { struct piece room, of; } shared[64];
static unsigned npieces, nshared;
static const char *entry_at;

static int inside(struct piece p, uintptr_t at, size_t n) { return at - p.at <= p.size && n <= p.size - (at - p.at); }

/* touch ends the process where a kernel may not touch the bytes at an address. */
static void touch(uintptr_t at, size_t n, int write) {
	if (npieces && inside(all, at, 1)) {
		static unsigned last;
		for (unsigned k = 0; k < npieces; k++) {
			const struct piece *p = &pieces[(last + k) % npieces];
			if (inside((struct piece){p->at, p->size & ~writable}, at, n) && (!write || p->size & writable)) {
				last = (last + k) % npieces;
				return;
			}
		}
	} else {
		unsigned k = 0;
		while (k < nshared && !inside(shared[k].room, at, 1))
			k++;
		if (k == nshared || inside(shared[k].of, at, n))
			return;
		fprintf(stderr, "kernel %s %s %zu bytes at %td of memory of a block, which has %zu\n", entry_at, write ? "stores" : "loads", n, at - shared[k].of.at, shared[k].of.size);
		abort();
	}
	fprintf(stderr, "kernel %s %s %zu bytes where it may not:", entry_at, write ? "stores" : "loads", n);
	for (unsigned k = 0; k < npieces; k++)
		fprintf(stderr, " at %td of %zu,", at - pieces[k].at, (size_t)(pieces[k].size & ~writable));
	fprintf(stderr, " which are all\n");
	abort();
}

/* shim_watch is told of memory that a block shares: what of a room is used. */
void shim_watch(const void *room, size_t bytes, const void *of, size_t used) {
	unsigned k = 0;
	while (k < nshared && shared[k].room.at != (uintptr_t)room)
		k++;
	if (k == sizeof shared / sizeof *shared)
		return;
	shared[k].room = (struct piece){(uintptr_t)room, bytes};
	shared[k].of = (struct piece){(uintptr_t)of, used};
	if (k == nshared)
		nshared++;
}

#define ACCESSES(N)                                                                                \
	void __asan_load##N##_noabort(uintptr_t at) { touch(at, N, 0); }                           \
	void __asan_store##N##_noabort(uintptr_t at) { touch(at, N, 1); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __asan_loadN_noabort(uintptr_t at, size_t n) { touch(at, n, 0); }
void __asan_storeN_noabort(uintptr_t at, size_t n) { touch(at, n, 1); }
void __asan_handle_no_return(void) {}

int main(int argc, char **argv) {
	size_t size = strtoull(argv[2], 0, 10), base = strtoull(argv[3], 0, 10);
	int f = open(argv[1], O_RDWR);
	if (f < 0 || mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, f, 0) != (void *)base)
		return perror("runner: memory"), 1;
	all = (struct piece){base, size};
	char path[4000], entry[300];
	static _Alignas(16) unsigned char args[4096];
	unsigned grid, block, order, bytes;
	while (scanf("run %3999s %299s %u %u %u %u %u", path, entry, &grid, &block, &order, &bytes, &npieces) == 7) {
		getchar();
		if (bytes > sizeof args || fread(args, 1, bytes, stdin) != bytes)
			return fprintf(stderr, "runner: an argument of %u bytes\n", bytes), 1;
		if (npieces > most || fread(pieces, sizeof *pieces, npieces, stdin) != npieces)
			return fprintf(stderr, "runner: %u pieces of memory\n", npieces), 1;
		void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		run *k = object ? (run *)symbol(object, entry, "run") : 0;
		unsigned *want = object ? symbol(object, entry, "args") : 0;
		const struct shim_calls **calls = object ? dlsym(object, "shim_calls_1") : 0;
		entry_at = entry, nshared = 0;
		if (!k || !want || !calls)
			printf("%s\n", dlerror());
		else if (*want != bytes)
			printf("%s wants %u bytes of arguments, got %u\n", entry, *want, bytes);
		else {
			*calls = &shim_calls;
			k(grid, block, order, args);
			printf("ok\n");
		}
		fflush(stdout);
	}
	return 0;
}
