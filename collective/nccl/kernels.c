// Kernels beside NCCL's: the division of a mean, and the sum of what all ranks
// sent by the tree of package reduce. One text for NVRTC and, for tests, a C
// compiler; an element is one thread's business, so there is nothing to
// synchronise.

typedef unsigned short bf16; // the upper half of a float

typedef struct {
	unsigned long long dst;   // elements to divide; or where the sum goes
	unsigned long long own;   // this rank's own elements
	unsigned long long parts; // those of the others: rank r's begin at r*stride elements
	long long n;              // elements
	long long stride;
	int ranks, rank;
	int div; // the sum is divided by this, if it is above 1
	int none;
} arguments;

#ifdef __CUDACC_RTC__
#define DEVICE static __device__ __forceinline__
// KERNEL: each thread does every so-many-th element.
#define KERNEL(name, one)                                                                             \
	extern "C" __global__ void name(arguments a) {                                                \
		long long step = (long long)gridDim.x * blockDim.x;                                   \
		for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) \
			one(&a, i);                                                                   \
	}
DEVICE float as_float(unsigned u) { return __uint_as_float(u); }
DEVICE unsigned as_bits(float f) { return __float_as_uint(f); }
#else
#define DEVICE static inline
#define KERNEL(name, one)                                                                   \
	__attribute__((visibility("default"))) void name##__run(unsigned grid, unsigned block, int order, const void *p) { \
		arguments a = *(const arguments *)p;                                        \
		(void)grid, (void)block;                                                    \
		for (long long i = 0; i < a.n; i++) one(&a, order ? a.n - 1 - i : i);       \
	}                                                                                   \
	__attribute__((visibility("default"))) const unsigned name##__args = sizeof(arguments);
DEVICE float as_float(unsigned u) { union { unsigned u; float f; } x; x.u = u; return x.f; }
DEVICE unsigned as_bits(float f) { union { unsigned u; float f; } x; x.f = f; return x.u; }
#endif

DEVICE float widen(bf16 h) { return as_float((unsigned)h << 16); }

// narrow rounds to nearest, ties to even; a NaN stays a NaN.
DEVICE bf16 narrow(float f) {
	unsigned u = as_bits(f);
	if (f != f) return (bf16)(u >> 16 | 0x40);
	return (bf16)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#define SAME(x) (x)

// TREE sums n ranks by the tree that cuts after the largest power of two below n:
// partial sums are joined as a binary counter carries, and what is left at the
// end from the right.
#define TYPE(suffix, T, wide, get, put)                                                              \
	DEVICE void divide_one_##suffix(const arguments *a, long long i) {                           \
		T *x = (T *)a->dst;                                                                  \
		x[i] = put(get(x[i]) / (wide)a->div);                                                \
	}                                                                                            \
	KERNEL(divide_##suffix, divide_one_##suffix)                                                 \
	DEVICE wide leaf_##suffix(const arguments *a, int r, long long i) {                          \
		return get(r == a->rank ? ((const T *)a->own)[i] : ((const T *)a->parts)[r * a->stride + i]); \
	}                                                                                            \
	DEVICE void tree_one_##suffix(const arguments *a, long long i) {                             \
		wide level[16];                                                                      \
		int levels = 0;                                                                      \
		for (int r = 0; r < a->ranks; r++) {                                                 \
			wide x = leaf_##suffix(a, r, i);                                             \
			for (int k = r + 1; (k & 1) == 0; k >>= 1) x = level[--levels] + x;          \
			level[levels++] = x;                                                         \
		}                                                                                    \
		wide x = level[--levels];                                                            \
		while (levels > 0) x = level[--levels] + x;                                          \
		if (a->div > 1) x = x / (wide)a->div;                                                \
		((T *)a->dst)[i] = put(x);                                                           \
	}                                                                                            \
	KERNEL(tree_##suffix, tree_one_##suffix)

TYPE(f32, float, float, SAME, SAME)
TYPE(f64, double, double, SAME, SAME)
TYPE(bf16, bf16, float, widen, narrow)
