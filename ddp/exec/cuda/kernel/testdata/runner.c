/* Runner runs compiled kernels for the tests: on memory that it shares with them, at
 * the address that they are told of. It reads commands from its input,
 *
 *   run OBJECT ENTRY GRID BLOCK ORDER BYTES\n and the bytes of the argument
 *
 * and answers each with a line: ok, or what is wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void run(unsigned, unsigned, int, const void *);

static void *symbol(void *object, const char *entry, const char *what) {
	char name[400];
	snprintf(name, sizeof name, "%s__%s", entry, what);
	return dlsym(object, name);
}

int main(int argc, char **argv) {
	size_t size = strtoull(argv[2], 0, 10), base = strtoull(argv[3], 0, 10);
	int f = open(argv[1], O_RDWR);
	if (f < 0 || mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, f, 0) != (void *)base)
		return perror("runner: memory"), 1;
	char path[4000], entry[300];
	static _Alignas(16) unsigned char args[4096];
	unsigned grid, block, order, bytes;
	while (scanf("run %3999s %299s %u %u %u %u", path, entry, &grid, &block, &order, &bytes) == 6) {
		getchar();
		if (bytes > sizeof args || fread(args, 1, bytes, stdin) != bytes)
			return fprintf(stderr, "runner: an argument of %u bytes\n", bytes), 1;
		void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		run *k = object ? (run *)symbol(object, entry, "run") : 0;
		unsigned *want = object ? symbol(object, entry, "args") : 0;
		if (!k || !want)
			printf("%s\n", dlerror());
		else if (*want != bytes)
			printf("%s wants %u bytes of arguments, got %u\n", entry, *want, bytes);
		else {
			k(grid, block, order, args);
			printf("ok\n");
		}
		fflush(stdout);
	}
	return 0;
}
