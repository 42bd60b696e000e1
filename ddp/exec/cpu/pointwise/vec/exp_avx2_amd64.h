// Functions made of the exponential, of eight float32 (AVX2, FMA), in place: of A, one
// of Y0 … Y7, with a parameter in Y15. Y8 … Y14 are their own.
//
// The same file lies in packages vec and machine, as the assembler does not look
// beyond a package's folder; a test of machine compares them.
//
// With k the whole number nearest to x/ln 2 and r = x − k·ln 2,
//
//	eˣ − 1 = 2ᵏ·p + (2ᵏ − 1),   p = eʳ − 1 = r + r²·q(r),
//
// where q has the coefficients of Cephes' expf.

DATA expf<>+0(SB)/4, $0x3fb8aa3b // 1/ln 2
DATA expf<>+4(SB)/4, $0x3f318000 // ln 2, upper part
DATA expf<>+8(SB)/4, $0xb95e8083 // ln 2, the rest
DATA expf<>+12(SB)/4, $0x39506967 // q, highest power first
DATA expf<>+16(SB)/4, $0x3ab743ce
DATA expf<>+20(SB)/4, $0x3c088908
DATA expf<>+24(SB)/4, $0x3d2aa9c1
DATA expf<>+28(SB)/4, $0x3e2aaaaa
DATA expf<>+32(SB)/4, $0x3f000000
DATA expf<>+36(SB)/4, $0xc2d00000 // −104: eˣ is 0 below
DATA expf<>+40(SB)/4, $0x42b20000 // 89: eˣ is infinite above
DATA expf<>+44(SB)/4, $0xc1f00000 // −30: eˣ − 1 is −1 below
DATA expf<>+48(SB)/4, $0x3f800000 // 1
DATA expf<>+52(SB)/4, $0x40000000 // 2
DATA expf<>+56(SB)/4, $0x80000000 // the sign
DATA expf<>+60(SB)/4, $0x0000007f // the exponent of 1
DATA expf<>+64(SB)/4, $0x3d888889 // 1/15 … 1/3: atanh
DATA expf<>+68(SB)/4, $0x3d9d89d9
DATA expf<>+72(SB)/4, $0x3dba2e8c
DATA expf<>+76(SB)/4, $0x3de38e39
DATA expf<>+80(SB)/4, $0x3e124925
DATA expf<>+84(SB)/4, $0x3e4ccccd
DATA expf<>+88(SB)/4, $0x3eaaaaab
DATA expf<>+92(SB)/4, $0x3d70f0f1 // 1/17
GLOBL expf<>(SB), RODATA|NOPTR, $96

#define K(i, Y) VBROADCASTSS expf<>+i(SB), Y

// From x in Y8, p in Y10 and k, as an integer, in Y9.
#define CORE \
	K(0, Y12); \
	VMULPS Y12, Y8, Y9; \
	VROUNDPS $0, Y9, Y9; \
	K(4, Y12); \
	VFNMADD231PS Y12, Y9, Y8; \
	K(8, Y12); \
	VFNMADD231PS Y12, Y9, Y8; \
	K(12, Y10); \
	K(16, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	K(20, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	K(24, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	K(28, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	K(32, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	VMULPS Y8, Y8, Y11; \
	VFMADD213PS Y8, Y11, Y10; \
	VCVTPS2DQ Y9, Y9

// Y10 = exp Y8. The power of 2 is applied in two halves, each representable. A NaN stays, as
// it is the first operand, as written here, of MAX and MIN, which they give then.
#define EXP \
	K(36, Y12); \
	VMAXPS Y8, Y12, Y8; \
	K(40, Y12); \
	VMINPS Y8, Y12, Y8; \
	CORE; \
	K(48, Y12); \
	VADDPS Y12, Y10, Y10; \
	K(60, Y12); \
	VPSRAD $1, Y9, Y11; \
	VPSUBD Y11, Y9, Y9; \
	VPADDD Y12, Y11, Y11; \
	VPADDD Y12, Y9, Y9; \
	VPSLLD $23, Y11, Y11; \
	VPSLLD $23, Y9, Y9; \
	VMULPS Y11, Y10, Y10; \
	VMULPS Y9, Y10, Y10

// Y10 = exp(Y8) − 1, Y8 ≤ 0; of −0 it is 0. A NaN stays, as in EXP.
#define EXPM1 \
	K(44, Y12); \
	VMAXPS Y8, Y12, Y8; \
	CORE; \
	K(60, Y12); \
	VPADDD Y12, Y9, Y9; \
	VPSLLD $23, Y9, Y9; \
	K(48, Y12); \
	VSUBPS Y12, Y9, Y11; \
	VFMADD213PS Y11, Y9, Y10

#define EXPONENTIAL(A) \
	VMOVAPS A, Y8; \
	EXP; \
	VMOVAPS Y10, A

// Y13 = A > 0, Y14 = 0.
#define POSITIVE(A) \
	VXORPS Y14, Y14, Y14; \
	VCMPPS $0x1e, Y14, A, Y13

// Not the minimum with 0 but a mask: a NaN stays. The sign is that of x, which
// is −0's only as it is put back.
#define ELU(A) \
	POSITIVE(A); \
	VANDNPS A, Y13, Y8; \
	EXPM1; \
	K(56, Y12); \
	VANDPS Y12, A, Y8; \
	VORPS Y8, Y10, Y10; \
	VMULPS Y15, Y10, Y10; \
	VBLENDVPS Y13, A, Y10, A

#define ELUD(A) \
	VMOVAPS A, Y8; \
	EXP; \
	VMULPS Y15, Y10, Y10; \
	POSITIVE(A); \
	K(48, Y12); \
	VBLENDVPS Y13, Y12, Y10, A

#define ELUDD(A) \
	VMOVAPS A, Y8; \
	EXP; \
	VMULPS Y15, Y10, Y10; \
	POSITIVE(A); \
	VBLENDVPS Y13, Y14, Y10, A

// e = exp(−|x|): 1/(1+e), or e/(1+e) where x has a sign.
#define SIGMOID(A) \
	K(56, Y12); \
	VORPS Y12, A, Y8; \
	EXP; \
	K(48, Y12); \
	VADDPS Y12, Y10, Y11; \
	VBLENDVPS A, Y10, Y12, A; \
	VDIVPS Y11, A, A

// m = exp(−2|x|) − 1: −m/(2+m), with the sign of x.
#define TANH(A) \
	K(56, Y14); \
	VADDPS A, A, Y8; \
	VORPS Y14, Y8, Y8; \
	EXPM1; \
	K(52, Y12); \
	VADDPS Y12, Y10, Y11; \
	VDIVPS Y11, Y10, Y10; \
	VANDNPS Y10, Y14, Y10; \
	VANDPS Y14, A, A; \
	VORPS Y10, A, A

// e = exp(−|x|), log(1+e) = 2·atanh z, z = e/(2+e): max(x, 0) + 2z·(1 + z²/3 + …).
#define SOFTPLUS(A) \
	K(56, Y12); \
	VORPS Y12, A, Y8; \
	EXP; \
	K(52, Y14); \
	VADDPS Y14, Y10, Y11; \
	VDIVPS Y11, Y10, Y10; \
	VMULPS Y10, Y10, Y8; \
	K(92, Y9); \
	K(64, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(68, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(72, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(76, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(80, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(84, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	K(88, Y11); \
	VFMADD213PS Y11, Y8, Y9; \
	VMULPS Y8, Y10, Y8; \
	VFMADD213PS Y10, Y8, Y9; \
	VXORPS Y12, Y12, Y12; \
	VMAXPS A, Y12, A; \
	VFMADD231PS Y14, Y9, A
