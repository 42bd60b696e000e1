/* What CUDA C has built in and kernels use, as declarations: enough for a C++ compiler
 * to read kernels as NVRTC does, and refuse what is no C++. */
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#if __CUDA_ARCH__ >= 700
#define __grid_constant__
#endif
struct dim3 { unsigned x, y, z; };
extern const dim3 threadIdx, blockIdx, blockDim, gridDim;
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
void __syncthreads();
void __threadfence();
unsigned atomicInc(unsigned *, unsigned);
template <class T> T __shfl_down_sync(unsigned, T, unsigned);
double __dmul_rn(double, double);
double __dadd_rn(double, double);
double __ddiv_rn(double, double);
double __dsqrt_rn(double);
float __fmaf_rn(float, float, float);
double __fma_rn(double, double, double);
unsigned __umulhi(unsigned, unsigned);
unsigned __float_as_uint(float);
float __uint_as_float(unsigned);
long long __double_as_longlong(double);
double __longlong_as_double(long long);
long long __double2ll_rn(double);
float expf(float), expm1f(float), logf(float), log1pf(float), tanhf(float), sqrtf(float), sinf(float), cosf(float), erff(float), fabsf(float), powf(float, float);
double exp(double), expm1(double), log(double), log1p(double), tanh(double), sqrt(double), sin(double), cos(double), erf(double), fabs(double), pow(double, double);
