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
 * What runs threads is not compiled with each kernel: it is cuda_shim.c, whose calls are
 * given to a shared object once it is open, through its variable shim_calls_1 (another
 * number, when struct shim or struct shim_calls change: compiled kernels are kept).
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
#include <string.h>

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

enum { shim_threads = 1024 };

/* What an OS thread runs, as a kernel sees it. */
struct shim {
	unsigned grid, block, bid, tid;
	int fresh; /* no thread of the block has yielded or ended yet */
	int last;  /* the block is the last to come to a counter */
};
static __thread struct shim *shim_at;

/* What runs threads: cuda_shim.c says what each does. Each shared object has a variable of
 * its own for them, which no other of the name takes the place of: it is protected. */
struct shim_calls {
	void (*run)(struct shim **at, const char *name, void (*body)(const void *), unsigned bound, int yields,
		    unsigned grid, unsigned block, int order, const void *args);
	void (*yield)(int line, int within);
	void (*put)(const void *x, size_t n, int line);
	void (*get)(void *x, size_t n, unsigned down);
	void (*mma)(float *c, const u32 *ab, int line);
	void (*fail)(const char *what, const char *more, int line);
};
__attribute__((visibility("protected"))) const struct shim_calls *shim_calls_1;

/* shim_last counts a block once all its threads have come. Thread 0 does
 * it, while the others wait. */
static inline int shim_last(u32 *counter, u32 n, int line) {
	struct shim *s = shim_at;
	shim_calls_1->yield(line, 0);
	if (s->tid == 0) {
		u32 before = *counter;
		if (before >= n)
			shim_calls_1->fail("a counter of blocks was not 0 before the kernel, or more came than it counts", "", line);
		s->last = before == n - 1;
		*counter = s->last ? 0 : before + 1;
	}
	shim_calls_1->yield(line, 0);
	return s->last;
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
		shim_calls_1->run(&shim_at, #NAME, NAME##__thread, BLOCK, YIELDS, grid, block, order, args); \
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
#define SYNC() shim_calls_1->yield(__LINE__, 0)
#define LAST(P, N) shim_last(P, N, __LINE__)
#define SHFL_DOWN(X, D)                                                                            \
	({                                                                                         \
		__typeof__(X) shim_x = (X);                                                        \
		shim_calls_1->put(&shim_x, sizeof shim_x, __LINE__);                               \
		shim_calls_1->get(&shim_x, sizeof shim_x, D);                                      \
		shim_x;                                                                            \
	})
#define MMA(C, A0, A1, A2, A3, B0, B1) shim_calls_1->mma(C, (const u32[]){A0, A1, A2, A3, B0, B1}, __LINE__)
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
			shim_calls_1->fail(#P, " is not aligned", __LINE__);                               \
	} while (0)

#endif
