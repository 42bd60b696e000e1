/* Shim compiles kernels with gcc, as C, and really runs them on the CPU.
 *
 * A kernel's text speaks a dialect of C that NVRTC and gcc both take; its words are
 * macros. Those of gcc are here; those of NVRTC are at the head of each kernel's text,
 * where the word SHIM says that they are not wanted:
 *
 *   gcc -x c -std=gnu11 -O1 -w -fPIC -shared -ffp-contract=off -fno-strict-aliasing \
 *       -include shim.h kernel.c -o kernel.so -lm
 *
 * The dialect:
 *
 *   KERNEL(name, block, args)        head of an entry whose threads never meet; args, a
 *                                    struct type, is its one argument, named a
 *   KERNEL_SYNC(name, block, args)   head of an entry that has SYNC, LAST, SHFL_DOWN or MMA
 *   KERNEL_FOUR(name, block, args)   KERNEL_SYNC of which four blocks are to fit a
 *                                    multiprocessor, and more are of no use
 *   DEVICE, FUNCTION                 before a function that kernels call: inline, or not
 *   TID BID BDIM GDIM                thread, block, threads in a block, blocks: int
 *   SHARED(type, name, [dims])       memory of the block, at the top of the kernel
 *   SYNC()                           all threads of the block meet
 *   LAST(counter, n)                 all threads of the block meet; whether it is the last
 *                                    of n blocks to come to that u32, which was 0 and is
 *                                    0 again then: it sees what the others have stored
 *   SHFL_DOWN(x, d)                  x of the thread d further in the warp of 32; its own
 *                                    where there is none; all threads of the block take part
 *   MMA(c, a0, a1, a2, a3, b0, b1)   a product of matrices by a warp, which holds them in
 *                                    parts: see shim_mma; all threads of the block take part
 *   MULRN ADDRN DIVRN SQRTRN         of doubles, each rounded by itself
 *   FMAF FMA                         x·y + z of float, double; here rounded twice
 *   UMULHI                           the upper half of a product of two u32
 *   F32BITS BITSF32 F64BITS BITSF64  a float as u32 and back, a double as u64
 *   BF16X2(lo, hi)                   two floats as bfloat16 in a u32
 *   TOINT(x)                         the i64 nearest to a double, ties to even
 *   ALIGNED(p, n)                    the promise that p is a multiple of n bytes; checked here
 *   UNROLL                           before a loop
 *   AGAIN(x)                         what is computed of the int x is computed again after,
 *                                    and not kept from before
 *   i8 … u64, bf16 (its bits)        types
 *
 * There are no atomics but LAST and no order between blocks; SYNC, LAST, SHFL_DOWN and MMA
 * stand where all threads of a block pass, or none.
 *
 * A kernel NAME becomes, for who opens the shared object,
 *
 *   void     NAME__run(unsigned grid, unsigned block, int order, const void *args)
 *   unsigned NAME__args    the size of the argument in bytes
 *   unsigned NAME__block   the most threads that a block may have
 *
 * NAME__run runs all blocks, one after the other, forwards (order 0) or backwards (1).
 * Threads of a KERNEL run one after the other. Those of a KERNEL_SYNC are fibres: each
 * runs to its next SYNC and yields; when all have, the next round begins. At SHFL_DOWN and
 * MMA only those of its warp meet, so that a warp runs ahead of the others as far as it can.
 * Who computes the same bits in both orders misses no SYNC, as far as the data tell. Shared
 * memory is full of NaN when a block begins, and so is some beside it. What the dialect
 * forbids ends the process with a sentence: threads that yield at different lines or leave
 * while others wait, SYNC in a KERNEL, a block too large, memory that is not aligned.
 *
 * Several OS threads may run kernels at the same time.
 */
#ifndef SHIM
#define SHIM

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

typedef int8_t i8;
typedef uint8_t u8;
typedef uint16_t u16, bf16;
typedef int32_t i32;
typedef uint32_t u32;
typedef long long i64;
typedef unsigned long long u64;

/* A vector lies at a multiple of its size, or a device refuses to move it. */
typedef struct { float x, y, z, w; } __attribute__((aligned(16))) float4;
typedef struct { double x, y; } __attribute__((aligned(16))) double2;
typedef struct { u32 x, y; } __attribute__((aligned(8))) uint2;
typedef struct { u32 x, y, z, w; } __attribute__((aligned(16))) uint4;

enum { shim_stack = 32 << 10, shim_threads = 1024, shim_warp = 32, shim_slot = 24, shim_spare = 8 };

/* What the shim itself does is not watched. */
#define SHIM_OWN __attribute__((no_sanitize("kernel-address")))

/* What an OS thread runs. */
struct shim {
	const char *name;                /* of the kernel */
	unsigned grid, block, bid, tid;
	unsigned yields;                 /* 1: threads are fibres */
	int fresh;                       /* no thread of the block has yielded or ended yet */
	int last;                        /* the block is the last to come to a counter */
	int line;                        /* where the fibre at hand yielded, 0 if it has ended */
	int within;                      /* there its warp meets, and not all of the block */
	unsigned turn;                   /* of shuffles: which slots are written */
	unsigned char (*slots)[shim_threads][shim_slot];
	void (*body)(const void *);
	const void *args;
#if defined(__x86_64__)
	void *main, *fibre[shim_threads];
#else
	ucontext_t main, *fibre;
#endif
};
static __thread struct shim *shim_at;

static void shim_fail(const char *what, const char *more, int line) {
	struct shim *s = shim_at;
	fprintf(stderr, "kernel %s, block %u of %u, thread %u of %u, line %d: %s%s\n",
		s ? s->name : "?", s ? s->bid : 0, s ? s->grid : 0, s ? s->tid : 0, s ? s->block : 0, line, what, more);
	abort();
}

#if defined(__x86_64__)
/* shim_switch leaves one stack for another. */
__attribute__((naked, noinline)) static void shim_switch(void **from, void *to) {
	__asm__ volatile("pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n\t"
			 "movq %rsp, (%rdi); movq %rsi, %rsp\n\t"
			 "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
#define SHIM_TO_FIBRE(s, t) shim_switch(&(s)->main, (s)->fibre[t])
#define SHIM_TO_MAIN(s, t) shim_switch(&(s)->fibre[t], (s)->main)
#else
#define SHIM_TO_FIBRE(s, t) swapcontext(&(s)->main, &(s)->fibre[t])
#define SHIM_TO_MAIN(s, t) swapcontext(&(s)->fibre[t], &(s)->main)
#endif

SHIM_OWN static void shim_yield(int line, int within) {
	struct shim *s = shim_at;
	if (!s->yields)
		shim_fail("SYNC, SHFL_DOWN or MMA in a KERNEL: it must be a KERNEL_SYNC", "", line);
	s->line = line, s->within = within;
	SHIM_TO_MAIN(s, s->tid);
}

static void shim_sync(int line) { shim_yield(line, 0); }

/* shim_last counts a block once all its threads have come. Thread 0 does
 * it, while the others wait. */
static int shim_last(u32 *counter, u32 n, int line) {
	struct shim *s = shim_at;
	shim_sync(line);
	if (s->tid == 0) {
		u32 before = *counter;
		if (before >= n)
			shim_fail("a counter of blocks was not 0 before the kernel, or more came than it counts", "", line);
		s->last = before == n - 1;
		*counter = s->last ? 0 : before + 1;
	}
	shim_sync(line);
	return s->last;
}

/* shim_put and shim_get are the halves of a shuffle: all put, meet, and get. The
 * next shuffle puts elsewhere, so nobody overwrites what others have yet to get. */
SHIM_OWN static void shim_put(const void *x, size_t n, int line) {
	struct shim *s = shim_at;
	memcpy(s->slots[s->turn & 1][s->tid], x, n);
	shim_yield(line, 1);
}

SHIM_OWN static void shim_get(void *x, size_t n, unsigned down) {
	struct shim *s = shim_at;
	unsigned from = s->tid + down;
	if (from / shim_warp != s->tid / shim_warp || from >= s->block)
		from = s->tid;
	memcpy(x, s->slots[(s->turn & 1) ^ 1][from], n);
}

SHIM_OWN static float shim_wide(u32 x) {
	float f;
	x <<= 16;
	memcpy(&f, &x, 4);
	return f;
}

/* shim_mma adds the product of a (16 by 16) and b (16 by 8), of bfloat16, to c (16 by 8), of
 * float32, as mma.m16n8k16 has them in a warp. Thread 4g + t holds, with two neighbours in k
 * in a word, the first in its lower half,
 *
 *   a0, a1: rows g, g + 8, k of 2t, 2t + 1      b0: k of 2t, 2t + 1, column g
 *   a2, a3: the same, k of 2t + 8, 2t + 9       b1: k of 2t + 8, 2t + 9
 *   c[0], c[1]: row g, columns 2t, 2t + 1       c[2], c[3]: row g + 8
 *
 * Sums are rounded once; in which order a device adds is not said. */
SHIM_OWN static void shim_mma(float *c, const u32 *ab, int line) {
	struct shim *s = shim_at;
	if (s->block % shim_warp)
		shim_fail("MMA in a block that is not whole warps", "", line);
	shim_put(ab, 24, line);
	const unsigned warp = s->tid / shim_warp * shim_warp, g = s->tid % shim_warp / 4, t = s->tid % 4;
	unsigned char (*slot)[shim_slot] = s->slots[(s->turn & 1) ^ 1] + warp;
	for (unsigned i = 0; i < 4; i++) {
		double sum = c[i];
		for (unsigned k = 0; k < 16; k++) {
			u32 a, b;
			memcpy(&a, slot[4 * g + k % 8 / 2] + 4 * (i / 2 + k / 8 * 2), 4);
			memcpy(&b, slot[4 * (2 * t + i % 2) + k % 8 / 2] + 4 * (4 + k / 8), 4);
			sum += (double)shim_wide(a >> k % 2 * 16 & 0xffff) * shim_wide(b >> k % 2 * 16 & 0xffff);
		}
		c[i] = (float)sum;
	}
}

static void shim_fibre(void) {
	struct shim *s = shim_at;
	s->body(s->args);
	s->line = 0;
	SHIM_TO_MAIN(s, s->tid);
}

/* shim_prepare gives fibre t a stack on which it begins. */
static void shim_prepare(struct shim *s, unsigned t, char *stack) {
#if defined(__x86_64__)
	void **top = (void **)(stack + shim_stack);
	*--top = 0; /* who shim_fibre would return to */
	*--top = (void *)shim_fibre;
	for (int i = 0; i < 6; i++)
		*--top = 0;
	s->fibre[t] = top;
#else
	getcontext(&s->fibre[t]);
	s->fibre[t].uc_stack.ss_sp = stack;
	s->fibre[t].uc_stack.ss_size = shim_stack;
	makecontext(&s->fibre[t], shim_fibre, 0);
#endif
	*(u64 *)stack = 0x5afe57ac5afe57acULL;
}

static void shim_part(const char *what, int at, int line) {
	char other[64];
	snprintf(other, sizeof other, at ? "the first thread is at line %d" : "the first thread has left", at);
	shim_fail(what, other, line);
}

/* shim_round runs the fibres of a warp until all of the block must meet, or they have ended,
 * and says in how many rounds. */
SHIM_OWN static unsigned shim_round(struct shim *s, char *stacks, unsigned warp, int order) {
	const unsigned first = warp * shim_warp, end = first + shim_warp < s->block ? first + shim_warp : s->block;
	unsigned rounds = 0;
	do {
		int at = 0;
		for (unsigned k = first; k < end; k++) {
			s->tid = order ? first + end - 1 - k : k;
			SHIM_TO_FIBRE(s, s->tid);
			s->fresh = 0;
			if (*(u64 *)(stacks + (size_t)s->tid * shim_stack) != 0x5afe57ac5afe57acULL)
				shim_fail("the stack of a thread is too small", "", s->line);
			if (k == first)
				at = s->line;
			else if (at != s->line)
				shim_part("threads part: ", at, s->line);
		}
		s->turn++, rounds++;
	} while (s->line && s->within);
	return rounds;
}

/* shim_block runs the fibres of a block, warp by warp: each as far as it comes without the
 * others. */
SHIM_OWN static void shim_block(struct shim *s, char *stacks, int order) {
	const unsigned warps = (s->block + shim_warp - 1) / shim_warp;
	for (unsigned t = 0; t < s->block; t++)
		shim_prepare(s, t, stacks + (size_t)t * shim_stack);
	for (int at = -1; at; ) {
		unsigned rounds = 0;
		for (unsigned w = 0; w < warps; w++) {
			const unsigned n = shim_round(s, stacks, order ? warps - 1 - w : w, order);
			if (w == 0)
				at = s->line, rounds = n;
			else if (at != s->line)
				shim_part("threads part: ", at, s->line);
			else if (rounds != n)
				shim_part("threads part: a warp has shuffled or multiplied more often than another, ", at, s->line);
		}
	}
}

/* The stacks of a block, kept for the next launch, of as many launches at a time. Who opens
 * many modules gives them room of its own, which they share (cuda_module.c): else each would
 * touch new memory, and page faults are dear. */
static char *shim_own[shim_spare];
char **shim_spares = shim_own;

static char *shim_take(void) {
	for (int i = 0; i < shim_spare; i++) {
		char *stacks = __atomic_exchange_n(&shim_spares[i], 0, __ATOMIC_ACQ_REL);
		if (stacks)
			return stacks;
	}
	char *stacks = mmap(0, shim_threads * shim_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		shim_fail("no memory for stacks", "", 0);
	return stacks;
}

static void shim_give(char *stacks) {
	for (int i = 0; i < shim_spare; i++) {
		char *none = 0;
		if (__atomic_compare_exchange_n(&shim_spares[i], &none, stacks, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return;
	}
	munmap(stacks, shim_threads * shim_stack);
}

__attribute__((destructor)) static void shim_unload(void) {
	for (int i = 0; i < shim_spare; i++)
		if (shim_own[i])
			munmap(shim_own[i], shim_threads * shim_stack);
}

SHIM_OWN static void shim_run(const char *name, void (*body)(const void *), unsigned bound, int yields,
		     unsigned grid, unsigned block, int order, const void *args) {
	struct shim *s = calloc(1, sizeof *s), *outer = shim_at;
	char *stacks = 0;
	shim_at = s;
	s->name = name, s->grid = grid, s->block = block, s->yields = yields, s->body = body, s->args = args;
	if (grid == 0 || block == 0 || block > bound || bound > shim_threads)
		shim_fail("no such grid or block", "", 0);
	if (yields) {
		s->slots = malloc(2 * sizeof *s->slots);
#if !defined(__x86_64__)
		s->fibre = calloc(block, sizeof *s->fibre);
#endif
		stacks = shim_take();
	}
	for (unsigned b = 0; b < grid; b++) {
		s->bid = order ? grid - 1 - b : b;
		s->fresh = 1;
		if (yields) {
			shim_block(s, stacks, order);
			continue;
		}
		for (unsigned t = 0; t < block; t++) {
			s->tid = order ? block - 1 - t : t;
			body(args);
			s->fresh = 0;
		}
	}
	if (yields) {
		shim_give(stacks);
		free(s->slots);
#if !defined(__x86_64__)
		free(s->fibre);
#endif
	}
	shim_at = outer;
	free(s);
}

#define SHIM_KERNEL(NAME, BLOCK, ARGS, YIELDS)                                                     \
	static void NAME(const ARGS a);                                                            \
	static void NAME##__thread(const void *p) {                                                \
		ARGS a;                                                                            \
		memcpy(&a, p, sizeof a);                                                           \
		NAME(a);                                                                           \
	}                                                                                          \
	const unsigned NAME##__args = sizeof(ARGS);                                                \
	const unsigned NAME##__block = BLOCK;                                                      \
	void NAME##__run(unsigned grid, unsigned block, int order, const void *args) {             \
		shim_run(#NAME, NAME##__thread, BLOCK, YIELDS, grid, block, order, args);          \
	}                                                                                          \
	static void NAME(const ARGS a)

#define KERNEL(NAME, BLOCK, ARGS) SHIM_KERNEL(NAME, BLOCK, ARGS, 0)
#define KERNEL_SYNC(NAME, BLOCK, ARGS) SHIM_KERNEL(NAME, BLOCK, ARGS, 1)
#define KERNEL_FOUR(NAME, BLOCK, ARGS) KERNEL_SYNC(NAME, BLOCK, ARGS)
#define DEVICE static inline
#define FUNCTION static
#define TID ((int)shim_at->tid)
#define BID ((int)shim_at->bid)
#define BDIM ((int)shim_at->block)
#define GDIM ((int)shim_at->grid)
#define SYNC() shim_sync(__LINE__)
#define LAST(P, N) shim_last(P, N, __LINE__)
#define SHFL_DOWN(X, D)                                                                            \
	({                                                                                         \
		__typeof__(X) shim_x = (X);                                                        \
		shim_put(&shim_x, sizeof shim_x, __LINE__);                                        \
		shim_get(&shim_x, sizeof shim_x, D);                                               \
		shim_x;                                                                            \
	})
#define MMA(C, A0, A1, A2, A3, B0, B1) shim_mma(C, (const u32[]){A0, A1, A2, A3, B0, B1}, __LINE__)
/* The first thread that comes here fills the memory with NaN, and some on both sides. Who
 * watches what kernels touch (kernel/testdata/runner.c) is told of it. It is reached by a
 * pointer of which gcc knows nothing: what it knows to be a thread's own is not watched. */
extern void shim_watch(const void *room, size_t bytes, const void *of, size_t used) __attribute__((weak));
#define SHARED(TYPE, NAME, DIMS)                                                                   \
	static __thread struct {                                                                   \
		char before[1024];                                                                 \
		TYPE of DIMS;                                                                      \
		char after[1024];                                                                  \
	} NAME##_room __attribute__((aligned(16)));                                                \
	__typeof__(&NAME##_room.of[0]) NAME = NAME##_room.of;                                      \
	__asm__("" : "+r"(NAME));                                                                  \
	if (shim_at->fresh) {                                                                      \
		memset(&NAME##_room, 0xff, sizeof NAME##_room);                                    \
		if (shim_watch)                                                                    \
			shim_watch(&NAME##_room, sizeof NAME##_room, NAME, sizeof NAME##_room.of); \
	}

#define MULRN(x, y) ((double)(x) * (double)(y))
#define ADDRN(x, y) ((double)(x) + (double)(y))
#define DIVRN(x, y) ((double)(x) / (double)(y))
#define SQRTRN(x) sqrt(x)
#define FMAF(x, y, z) ((float)(x) * (float)(y) + (float)(z))
#define FMA(x, y, z) ((double)(x) * (double)(y) + (double)(z))
#define UMULHI(x, y) ((u32)((u64)(u32)(x) * (u32)(y) >> 32))
#define TOINT(x) ((i64)llrint(x))
#define UNROLL
#define AGAIN(x) ((void)(x))
#define UNROLL1
#define UNROLL2
#define UNROLL4
#define UNROLL8

static inline u32 F32BITS(float x) { u32 u; memcpy(&u, &x, 4); return u; }
static inline float BITSF32(u32 u) { float x; memcpy(&x, &u, 4); return x; }
static inline u64 F64BITS(double x) { u64 u; memcpy(&u, &x, 8); return u; }
static inline double BITSF64(u64 u) { double x; memcpy(&x, &u, 8); return x; }

static inline u32 shim_bf16(float x) {
	u32 u = F32BITS(x);
	return x != x ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static inline u32 BF16X2(float lo, float hi) { return shim_bf16(lo) | shim_bf16(hi) << 16; }

#define ALIGNED(P, N)                                                                              \
	do {                                                                                       \
		if ((uintptr_t)(P) % (N))                                                          \
			shim_fail(#P, " is not aligned", __LINE__);                                \
	} while (0)

#endif
