// Functions made of the exponential, of eight float32 (AVX2, FMA): Y0 from x = Y1,
// with a parameter Y2, Y3 = 1, Y4 = sign, Y5 = 0.
//
// With k the whole number nearest to x/ln 2 and r = x − k·ln 2,
//
//	eˣ − 1 = 2ᵏ·p + (2ᵏ − 1),   p = eʳ − 1 = r + r²·q(r),
//
// where q has the coefficients of Cephes' expf.

DATA ·expf+0(SB)/4, $0x3fb8aa3b // 1/ln 2
DATA ·expf+4(SB)/4, $0x3f318000 // ln 2, upper part
DATA ·expf+8(SB)/4, $0xb95e8083 // ln 2, the rest
DATA ·expf+12(SB)/4, $0x39506967 // q, highest power first
DATA ·expf+16(SB)/4, $0x3ab743ce
DATA ·expf+20(SB)/4, $0x3c088908
DATA ·expf+24(SB)/4, $0x3d2aa9c1
DATA ·expf+28(SB)/4, $0x3e2aaaaa
DATA ·expf+32(SB)/4, $0x3f000000
DATA ·expf+36(SB)/4, $0xc2d00000 // −104: eˣ is 0 below
DATA ·expf+40(SB)/4, $0x42b20000 // 89: eˣ is infinite above
DATA ·expf+44(SB)/4, $0xc1f00000 // −30: eˣ − 1 is −1 below
DATA ·expf+48(SB)/4, $0x3f800000 // 1
DATA ·expf+52(SB)/4, $0x40000000 // 2
DATA ·expf+56(SB)/4, $0x80000000 // the sign
DATA ·expf+60(SB)/4, $0x0000007f // the exponent of 1
DATA ·expf+64(SB)/4, $0x3d888889 // 1/15 … 1/3: atanh
DATA ·expf+68(SB)/4, $0x3d9d89d9
DATA ·expf+72(SB)/4, $0x3dba2e8c
DATA ·expf+76(SB)/4, $0x3de38e39
DATA ·expf+80(SB)/4, $0x3e124925
DATA ·expf+84(SB)/4, $0x3e4ccccd
DATA ·expf+88(SB)/4, $0x3eaaaaab
DATA ·expf+92(SB)/4, $0x3d70f0f1 // 1/17
GLOBL ·expf(SB), RODATA|NOPTR, $96

#define K(i, Y) VBROADCASTSS ·expf+i(SB), Y

// From x in Y7, p in Y10 and k, as an integer, in Y8.
#define CORE \
	K(0, Y9); \
	VMULPS Y9, Y7, Y8; \
	VROUNDPS $0, Y8, Y8; \
	K(4, Y9); \
	VFNMADD231PS Y9, Y8, Y7; \
	K(8, Y9); \
	VFNMADD231PS Y9, Y8, Y7; \
	K(12, Y10); \
	K(16, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	K(20, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	K(24, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	K(28, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	K(32, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	VMULPS Y7, Y7, Y11; \
	VFMADD213PS Y7, Y11, Y10; \
	VCVTPS2DQ Y8, Y8

// Y10 = exp Y7. The power of 2 is applied in two halves, each representable.
#define EXP \
	K(36, Y9); \
	VMAXPS Y7, Y9, Y7; \
	K(40, Y9); \
	VMINPS Y7, Y9, Y7; \
	CORE; \
	VADDPS Y3, Y10, Y10; \
	K(60, Y12); \
	VPSRAD $1, Y8, Y9; \
	VPSUBD Y9, Y8, Y8; \
	VPADDD Y12, Y9, Y9; \
	VPADDD Y12, Y8, Y8; \
	VPSLLD $23, Y9, Y9; \
	VPSLLD $23, Y8, Y8; \
	VMULPS Y9, Y10, Y10; \
	VMULPS Y8, Y10, Y10

// Y10 = exp(Y7) − 1, Y7 ≤ 0; of −0 it is 0.
#define EXPM1 \
	K(44, Y9); \
	VMAXPS Y7, Y9, Y7; \
	CORE; \
	K(60, Y12); \
	VPADDD Y12, Y8, Y8; \
	VPSLLD $23, Y8, Y8; \
	VSUBPS Y3, Y8, Y9; \
	VFMADD213PS Y9, Y8, Y10

#define EXPONENTIAL VMOVAPS Y1, Y7; EXP; VMOVAPS Y10, Y0

#define POSITIVE VCMPPS $0x1e, Y5, Y1, Y6

// Not the minimum with 0 but a mask: a NaN stays. The sign is that of x, which
// is −0's only as it is put back.
#define ELU \
	POSITIVE; \
	VANDNPS Y1, Y6, Y7; \
	EXPM1; \
	VANDPS Y4, Y1, Y7; \
	VORPS Y7, Y10, Y10; \
	VMULPS Y2, Y10, Y10; \
	VBLENDVPS Y6, Y1, Y10, Y0

#define ELUD \
	VMOVAPS Y1, Y7; \
	EXP; \
	VMULPS Y2, Y10, Y10; \
	POSITIVE; \
	VBLENDVPS Y6, Y3, Y10, Y0

#define ELUDD \
	VMOVAPS Y1, Y7; \
	EXP; \
	VMULPS Y2, Y10, Y10; \
	POSITIVE; \
	VBLENDVPS Y6, Y5, Y10, Y0

// e = exp(−|x|): 1/(1+e), or e/(1+e) where x has a sign.
#define SIGMOID \
	VORPS Y4, Y1, Y7; \
	EXP; \
	VADDPS Y3, Y10, Y9; \
	VBLENDVPS Y1, Y10, Y3, Y0; \
	VDIVPS Y9, Y0, Y0

// m = exp(−2|x|) − 1: −m/(2+m), with the sign of x.
#define TANH \
	VADDPS Y1, Y1, Y7; \
	VORPS Y4, Y7, Y7; \
	EXPM1; \
	K(52, Y9); \
	VADDPS Y9, Y10, Y9; \
	VDIVPS Y9, Y10, Y0; \
	VANDNPS Y0, Y4, Y0; \
	VANDPS Y4, Y1, Y7; \
	VORPS Y7, Y0, Y0

// e = exp(−|x|), log(1+e) = 2·atanh z, z = e/(2+e): max(x, 0) + 2z·(1 + z²/3 + …).
#define SOFTPLUS \
	VORPS Y4, Y1, Y7; \
	EXP; \
	K(52, Y9); \
	VADDPS Y9, Y10, Y11; \
	VDIVPS Y11, Y10, Y10; \
	VMULPS Y10, Y10, Y7; \
	K(92, Y8); \
	K(64, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(68, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(72, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(76, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(80, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(84, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	K(88, Y11); \
	VFMADD213PS Y11, Y7, Y8; \
	VMULPS Y7, Y10, Y7; \
	VFMADD213PS Y10, Y7, Y8; \
	VMAXPS Y1, Y5, Y0; \
	VFMADD231PS Y9, Y8, Y0
