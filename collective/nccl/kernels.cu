// Kernels beside NCCL's: the division of a mean, and the sum of what all ranks
// sent by the tree of package reduce. An element is one thread's business, so
// there is nothing to synchronise. Tests compile the text as C, with words of
// their own instead of these.

#ifndef SHIM
typedef unsigned int u32;
typedef unsigned short bf16; // the upper half of a float
typedef long long i64;
typedef unsigned long long u64;
#define KERNEL(NAME, BLOCK, ARGS) extern "C" __global__ void __launch_bounds__(BLOCK) NAME(const ARGS a)
#define DEVICE static __device__ __forceinline__
#define TID ((int)threadIdx.x)
#define BID ((int)blockIdx.x)
#define BDIM ((int)blockDim.x)
#define GDIM ((int)gridDim.x)
#define F32BITS(x) __float_as_uint(x)
#define BITSF32(u) __uint_as_float(u)
#endif

typedef struct {
	u64 dst;     // elements to divide; or where the sum goes
	u64 own;     // this rank's own elements
	u64 parts;   // those of the others: rank r's begin at r*stride elements
	i64 n;       // elements
	i64 stride;
	int ranks, rank;
	int div; // the sum is divided by this, if it is above 1
	int none;
} arguments;

DEVICE float widen(bf16 h) { return BITSF32((u32)h << 16); }

// narrow rounds to nearest, ties to even; a NaN stays a NaN.
DEVICE bf16 narrow(float f) {
	u32 u = F32BITS(f);
	if (f != f) return (bf16)(u >> 16 | 0x40);
	return (bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define SAME(x) (x)

// EACH: each thread does every so-many-th element.
#define EACH(i) for (i64 i = (i64)BID * BDIM + TID; i < a.n; i += (i64)GDIM * BDIM)

// divide_T divides n elements. tree_T sums n elements of all ranks by the tree
// that cuts after the largest power of two below their number: partial sums are
// joined as a binary counter carries, and what is left at the end from the right.
#define TYPE(suffix, T, wide, get, put)                                                                  \
	KERNEL(divide_##suffix, 256, arguments) {                                                        \
		T *x = (T *)a.dst;                                                                       \
		EACH(i) x[i] = put(get(x[i]) / (wide)a.div);                                             \
	}                                                                                                \
	KERNEL(tree_##suffix, 256, arguments) {                                                          \
		const T *own = (const T *)a.own, *parts = (const T *)a.parts;                            \
		EACH(i) {                                                                                \
			wide level[16]; /* partial sums of ever fewer ranks */                           \
			int levels = 0;                                                                  \
			for (int r = 0; r < a.ranks; r++) {                                              \
				wide x = get(r == a.rank ? own[i] : parts[r * a.stride + i]);            \
				for (int k = r + 1; (k & 1) == 0; k >>= 1) x = level[--levels] + x;      \
				level[levels++] = x;                                                     \
			}                                                                                \
			wide x = level[--levels];                                                        \
			while (levels > 0) x = level[--levels] + x;                                      \
			((T *)a.dst)[i] = put(a.div > 1 ? x / (wide)a.div : x);                          \
		}                                                                                        \
	}

TYPE(f32, float, float, SAME, SAME)
TYPE(f64, double, double, SAME, SAME)
TYPE(bf16, bf16, float, widen, narrow)
