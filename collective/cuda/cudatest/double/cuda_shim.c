/* Runs the threads of kernels that gcc has compiled behind shim.h, for who opens them:
 * cuda_module.c, and kernel/testdata/runner.c. It is compiled once, and not with each kernel. */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

enum { shim_stack = 32 << 10, shim_warp = 32, shim_slot = 24, shim_spare = 8 };

/* A kernel's launch, on the OS thread that runs it. */
struct launch {
	struct shim seen;                /* what the kernel sees of it, and the first of all */
	const char *name;                /* of the kernel */
	unsigned yields;                 /* 1: threads are fibres */
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
static __thread struct launch *launch_at;

static void shim_fail(const char *what, const char *more, int line) {
	struct launch *s = launch_at;
	fprintf(stderr, "kernel %s, block %u of %u, thread %u of %u, line %d: %s%s\n",
		s ? s->name : "?", s ? s->seen.bid : 0, s ? s->seen.grid : 0, s ? s->seen.tid : 0, s ? s->seen.block : 0, line, what, more);
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

static void shim_yield(int line, int within) {
	struct launch *s = launch_at;
	if (!s->yields)
		shim_fail("SYNC, SHFL_DOWN or MMA in a KERNEL: it must be a KERNEL_SYNC", "", line);
	s->line = line, s->within = within;
	SHIM_TO_MAIN(s, s->seen.tid);
}

/* shim_put and shim_get are the halves of a shuffle: all put, meet, and get. The
 * next shuffle puts elsewhere, so nobody overwrites what others have yet to get. */
static void shim_put(const void *x, size_t n, int line) {
	struct launch *s = launch_at;
	memcpy(s->slots[s->turn & 1][s->seen.tid], x, n);
	shim_yield(line, 1);
}

static void shim_get(void *x, size_t n, unsigned down) {
	struct launch *s = launch_at;
	unsigned from = s->seen.tid + down;
	if (from / shim_warp != s->seen.tid / shim_warp || from >= s->seen.block)
		from = s->seen.tid;
	memcpy(x, s->slots[(s->turn & 1) ^ 1][from], n);
}

static float shim_wide(u32 x) {
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
static void shim_mma(float *c, const u32 *ab, int line) {
	struct launch *s = launch_at;
	if (s->seen.block % shim_warp)
		shim_fail("MMA in a block that is not whole warps", "", line);
	shim_put(ab, 24, line);
	const unsigned warp = s->seen.tid / shim_warp * shim_warp, g = s->seen.tid % shim_warp / 4, t = s->seen.tid % 4;
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
	struct launch *s = launch_at;
	s->body(s->args);
	s->line = 0;
	SHIM_TO_MAIN(s, s->seen.tid);
}

/* shim_prepare gives fibre t a stack on which it begins. */
static void shim_prepare(struct launch *s, unsigned t, char *stack) {
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
static unsigned shim_round(struct launch *s, char *stacks, unsigned warp, int order) {
	const unsigned first = warp * shim_warp, end = first + shim_warp < s->seen.block ? first + shim_warp : s->seen.block;
	unsigned rounds = 0;
	do {
		int at = 0;
		for (unsigned k = first; k < end; k++) {
			s->seen.tid = order ? first + end - 1 - k : k;
			SHIM_TO_FIBRE(s, s->seen.tid);
			s->seen.fresh = 0;
			if (*(u64 *)(stacks + (size_t)s->seen.tid * shim_stack) != 0x5afe57ac5afe57acULL)
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
static void shim_block(struct launch *s, char *stacks, int order) {
	const unsigned warps = (s->seen.block + shim_warp - 1) / shim_warp;
	for (unsigned t = 0; t < s->seen.block; t++)
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

/* The stacks of a block, kept for the next launch, of as many launches at a time: else each
 * would touch new memory, and page faults are dear. */
static char *shim_spares[shim_spare];

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

static void shim_run(struct shim **at, const char *name, void (*body)(const void *), unsigned bound, int yields,
		     unsigned grid, unsigned block, int order, const void *args) {
	struct launch *s = calloc(1, sizeof *s);
	char *stacks = 0;
	launch_at = s, *at = &s->seen;
	s->name = name, s->seen.grid = grid, s->seen.block = block, s->yields = yields, s->body = body, s->args = args;
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
		s->seen.bid = order ? grid - 1 - b : b;
		s->seen.fresh = 1;
		if (yields) {
			shim_block(s, stacks, order);
			continue;
		}
		for (unsigned t = 0; t < block; t++) {
			s->seen.tid = order ? block - 1 - t : t;
			body(args);
			s->seen.fresh = 0;
		}
	}
	if (yields) {
		shim_give(stacks);
		free(s->slots);
#if !defined(__x86_64__)
		free(s->fibre);
#endif
	}
	launch_at = 0, *at = 0;
	free(s);
}

const struct shim_calls shim_calls = {shim_run, shim_yield, shim_put, shim_get, shim_mma, shim_fail};
