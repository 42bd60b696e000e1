#ifndef SHIM
typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16, bf16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
/* Arguments are read where they lie. Before compute capability 7.0 the compiler does not take the word for it. */
#if __CUDA_ARCH__ >= 700
#define ONCE __grid_constant__
#else
#define ONCE
#endif
#define KERNEL(NAME, BLOCK, ARGS) extern "C" __global__ void __launch_bounds__(BLOCK) NAME(const ONCE ARGS a)
#define KERNEL_SYNC(NAME, BLOCK, ARGS) KERNEL(NAME, BLOCK, ARGS)
#define KERNEL_FOUR(NAME, BLOCK, ARGS) extern "C" __global__ void __launch_bounds__(BLOCK, 4) NAME(const ONCE ARGS a)
#define DEVICE static __device__ __forceinline__
#define FUNCTION static __device__ __noinline__
#define TID ((int)threadIdx.x)
#define BID ((int)blockIdx.x)
#define BDIM ((int)blockDim.x)
#define GDIM ((int)gridDim.x)
#define SHARED(TYPE, NAME, DIMS) __shared__ __align__(16) TYPE NAME DIMS
#define SYNC() __syncthreads()
#define LAST(P, N) lastBlock(P, N)
#define SHFL_DOWN(X, D) __shfl_down_sync(0xffffffffu, X, D)
#define MMA(C, A0, A1, A2, A3, B0, B1) mma(C, A0, A1, A2, A3, B0, B1)
#define MULRN(X, Y) __dmul_rn(X, Y)
#define ADDRN(X, Y) __dadd_rn(X, Y)
#define DIVRN(X, Y) __ddiv_rn(X, Y)
#define SQRTRN(X) __dsqrt_rn(X)
#define FMAF(X, Y, Z) __fmaf_rn(X, Y, Z)
#define FMA(X, Y, Z) __fma_rn(X, Y, Z)
#define UMULHI(X, Y) __umulhi(X, Y)
#define F32BITS(X) __float_as_uint(X)
#define BITSF32(X) __uint_as_float(X)
#define F64BITS(X) ((u64)__double_as_longlong(X))
#define BITSF64(X) __longlong_as_double((i64)(X))
#define TOINT(X) __double2ll_rn(X)
#define ALIGNED(P, N)
#define AGAIN(X) asm volatile("" : "+r"(X))
#define UNROLL _Pragma("unroll")
#define UNROLL1 _Pragma("unroll 1")
#define UNROLL2 _Pragma("unroll 2")
#define UNROLL4 _Pragma("unroll 4")
#define UNROLL8 _Pragma("unroll 8")
/* What all threads of the block wrote is seen by the thread that counts it, as they met, and so is released by it, too;
   and what it acquires is everybody's when they have met again. */
DEVICE int lastBlock(u32 *arrived, u32 n) {
	__shared__ u32 before;
	__syncthreads();
	if (threadIdx.x == 0) {
#if __CUDA_ARCH__ >= 700
		asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(n - 1) : "memory");
#else
		__threadfence();
		before = atomicInc(arrived, n - 1);
		__threadfence();
#endif
	}
	__syncthreads();
	return before == n - 1;
}
DEVICE void mma(float *c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
	c[0] = c[1] = c[2] = c[3] = BITSF32(0x7fffffffu); /* nobody asks this of a device that has no such unit */
#endif
}
DEVICE u32 BF16X2(float lo, float hi) {
#if __CUDA_ARCH__ >= 800
	u32 r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
	return r;
#else
	const u32 u = F32BITS(lo), v = F32BITS(hi);
	return (lo != lo ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16) |
	       (hi != hi ? v >> 16 | 0x40 : (v + 0x7fff + (v >> 16 & 1)) >> 16) << 16;
#endif
}
#endif

/* quot divides by d, of numbers below 2^31 by a product and a shift. */
typedef struct {
	i64 d;
	u32 m, s;
} quot;
DEVICE i32 quot32(i32 n, quot f) { return (i32)((UMULHI((u32)n, f.m) + (u32)n) >> f.s); }
DEVICE i64 quot64(i64 n, quot f) { return n / f.d; }

DEVICE float fromBF16(bf16 x) { return BITSF32((u32)x << 16); }
DEVICE bf16 toBF16(float x) { return (bf16)BF16X2(x, 0); }

/* Maxima and minima: NaN if either is, and +0 is greater than -0. */
DEVICE float maxF(float x, float y) { return x != x || x > y ? x : y != y || y > x ? y : x == 0 ? x + y : x; }
DEVICE double maxD(double x, double y) { return x != x || x > y ? x : y != y || y > x ? y : x == 0 ? x + y : x; }
DEVICE i64 maxL(i64 x, i64 y) { return x > y ? x : y; }
DEVICE float minF(float x, float y) { return -maxF(-x, -y); }
DEVICE double minD(double x, double y) { return -maxD(-x, -y); }
DEVICE i64 minL(i64 x, i64 y) { return x < y ? x : y; }
