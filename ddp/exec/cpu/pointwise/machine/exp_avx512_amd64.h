// Functions made of the exponential, and the logarithm, of the accumulator: the same
// operations as those of package vec (exp_avx2_amd64.h and log_avx2_amd64.h), which say
// what they are, so the bits are the same.

DATA ·expf+0(SB)/4, $0x3fb8aa3b // 1/ln 2
DATA ·expf+4(SB)/4, $0x3f318000 // ln 2, upper part
DATA ·expf+8(SB)/4, $0xb95e8083 // ln 2, the rest
DATA ·expf+12(SB)/4, $0x39506967 // q, highest power first
DATA ·expf+16(SB)/4, $0x3ab743ce
DATA ·expf+20(SB)/4, $0x3c088908
DATA ·expf+24(SB)/4, $0x3d2aa9c1
DATA ·expf+28(SB)/4, $0x3e2aaaaa
DATA ·expf+32(SB)/4, $0x3f000000
DATA ·expf+36(SB)/4, $0xc2d00000 // −104
DATA ·expf+40(SB)/4, $0x42b20000 // 89
DATA ·expf+44(SB)/4, $0xc1f00000 // −30
DATA ·expf+48(SB)/4, $0x40000000 // 2
DATA ·expf+52(SB)/4, $0x0000007f // the exponent of 1
DATA ·expf+56(SB)/4, $0x3d70f0f1 // 1/17 … 1/3: atanh
DATA ·expf+60(SB)/4, $0x3d888889
DATA ·expf+64(SB)/4, $0x3d9d89d9
DATA ·expf+68(SB)/4, $0x3dba2e8c
DATA ·expf+72(SB)/4, $0x3de38e39
DATA ·expf+76(SB)/4, $0x3e124925
DATA ·expf+80(SB)/4, $0x3e4ccccd
DATA ·expf+84(SB)/4, $0x3eaaaaab
GLOBL ·expf(SB), RODATA|NOPTR, $88

// Z21 … Z29 are CORE's constants, Z30 and Z31 EXP's bounds.
#define EXPCONSTANTS \
	VBROADCASTSS ·expf+0(SB), Z21; \
	VBROADCASTSS ·expf+4(SB), Z22; \
	VBROADCASTSS ·expf+8(SB), Z23; \
	VBROADCASTSS ·expf+12(SB), Z24; \
	VBROADCASTSS ·expf+16(SB), Z25; \
	VBROADCASTSS ·expf+20(SB), Z26; \
	VBROADCASTSS ·expf+24(SB), Z27; \
	VBROADCASTSS ·expf+28(SB), Z28; \
	VBROADCASTSS ·expf+32(SB), Z29; \
	VBROADCASTSS ·expf+36(SB), Z30; \
	VBROADCASTSS ·expf+40(SB), Z31

// The same for EXPM1.
#define EXPM1CONSTANTS \
	EXPCONSTANTS; \
	VBROADCASTSS ·expf+44(SB), Z30

// From x in Z8, p in Z10 and k, as an integer, in Z9.
#define CORE \
	VMULPS Z21, Z8, Z9; \
	VRNDSCALEPS $0, Z9, Z9; \
	VFNMADD231PS Z22, Z9, Z8; \
	VFNMADD231PS Z23, Z9, Z8; \
	VMOVAPS Z24, Z10; \
	VFMADD213PS Z25, Z8, Z10; \
	VFMADD213PS Z26, Z8, Z10; \
	VFMADD213PS Z27, Z8, Z10; \
	VFMADD213PS Z28, Z8, Z10; \
	VFMADD213PS Z29, Z8, Z10; \
	VMULPS Z8, Z8, Z11; \
	VFMADD213PS Z8, Z11, Z10; \
	VCVTPS2DQ Z9, Z9

// Z10 = exp Z8. A NaN stays, as it is the first operand, as written here, of MAX and MIN,
// which they give then.
#define EXP \
	VMAXPS Z8, Z30, Z8; \
	VMINPS Z8, Z31, Z8; \
	CORE; \
	VADDPS Z17, Z10, Z10; \
	VPSRAD $1, Z9, Z11; \
	VPSUBD Z11, Z9, Z9; \
	VPADDD.BCST ·expf+52(SB), Z11, Z11; \
	VPADDD.BCST ·expf+52(SB), Z9, Z9; \
	VPSLLD $23, Z11, Z11; \
	VPSLLD $23, Z9, Z9; \
	VMULPS Z11, Z10, Z10; \
	VMULPS Z9, Z10, Z10

// Z10 = exp(Z8) − 1, Z8 ≤ 0; of −0 it is 0. A NaN stays, as in EXP.
#define EXPM1 \
	VMAXPS Z8, Z30, Z8; \
	CORE; \
	VPADDD.BCST ·expf+52(SB), Z9, Z9; \
	VPSLLD $23, Z9, Z9; \
	VSUBPS Z17, Z9, Z11; \
	VFMADD213PS Z11, Z9, Z10

// What follows is done to a register A of the accumulator, with the parameter in Z19.
#define EXPONENTIAL(A) \
	VMOVAPS A, Z8; \
	EXP; \
	VMOVAPS Z10, A

// K1 = not A > 0, which is so of a NaN.
#define NOTPOSITIVE(A) VCMPPS $0x1a, Z16, A, K1

#define ELU(A) \
	NOTPOSITIVE(A); \
	VMOVAPS.Z A, K1, Z8; \
	EXPM1; \
	VPANDD Z18, A, Z8; \
	VPORD Z8, Z10, Z10; \
	VMULPS Z19, Z10, K1, A

#define ELUD(A) \
	VMOVAPS A, Z8; \
	EXP; \
	VMULPS Z19, Z10, Z10; \
	NOTPOSITIVE(A); \
	VBLENDMPS Z10, Z17, K1, A

#define ELUDD(A) \
	VMOVAPS A, Z8; \
	EXP; \
	NOTPOSITIVE(A); \
	VMULPS.Z Z19, Z10, K1, A

#define SIGMOID(A) \
	VPORD Z18, A, Z8; \
	EXP; \
	VADDPS Z17, Z10, Z11; \
	VPMOVD2M A, K1; \
	VBLENDMPS Z10, Z17, K1, A; \
	VDIVPS Z11, A, A

#define TANH(A) \
	VADDPS A, A, Z8; \
	VPORD Z18, Z8, Z8; \
	EXPM1; \
	VADDPS.BCST ·expf+48(SB), Z10, Z11; \
	VDIVPS Z11, Z10, Z10; \
	VPANDND Z10, Z18, Z10; \
	VPANDD Z18, A, A; \
	VPORD Z10, A, A

#define SOFTPLUS(A) \
	VPORD Z18, A, Z8; \
	EXP; \
	VADDPS Z15, Z10, Z11; \
	VDIVPS Z11, Z10, Z10; \
	VMULPS Z10, Z10, Z8; \
	VBROADCASTSS ·expf+56(SB), Z9; \
	VFMADD213PS.BCST ·expf+60(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+64(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+68(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+72(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+76(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+80(SB), Z8, Z9; \
	VFMADD213PS.BCST ·expf+84(SB), Z8, Z9; \
	VMULPS Z8, Z10, Z8; \
	VFMADD213PS Z10, Z8, Z9; \
	VMAXPS A, Z16, A; \
	VFMADD231PS Z15, Z9, A

DATA ·logf+0(SB)/4, $0x00800000 // the least normal number
DATA ·logf+4(SB)/4, $0x4c000000 // 2²⁵
DATA ·logf+8(SB)/4, $0xc1c80000 // −25
DATA ·logf+12(SB)/4, $0x004afb0d // the bits of 1 less those of √½
DATA ·logf+16(SB)/4, $0x3f3504f3 // √½
DATA ·logf+20(SB)/4, $0x0000007f // the exponent of 1
DATA ·logf+24(SB)/4, $0x007fffff // a mantissa
DATA ·logf+28(SB)/4, $0x3d9021bb // q, highest power first
DATA ·logf+32(SB)/4, $0xbdebd1b8
DATA ·logf+36(SB)/4, $0x3def251a
DATA ·logf+40(SB)/4, $0xbdfe5d4f
DATA ·logf+44(SB)/4, $0x3e11e9bf
DATA ·logf+48(SB)/4, $0xbe2aae50
DATA ·logf+52(SB)/4, $0x3e4cceac
DATA ·logf+56(SB)/4, $0xbe7ffffc
DATA ·logf+60(SB)/4, $0x3eaaaaaa
DATA ·logf+64(SB)/4, $0xb95e8083 // ln 2, less the next
DATA ·logf+68(SB)/4, $0x3f318000
DATA ·logf+72(SB)/4, $0x3f000000
DATA ·logf+76(SB)/4, $0x7f800000 // infinity
DATA ·logf+80(SB)/4, $0xff800000 // its negative
DATA ·logf+84(SB)/4, $0x7fc00000 // not a number
GLOBL ·logf(SB), RODATA|NOPTR, $88

#define LOGCONSTANTS \
	VBROADCASTSS ·logf+8(SB), Z21; \
	VBROADCASTSS ·logf+80(SB), Z22; \
	VBROADCASTSS ·logf+84(SB), Z23; \
	VBROADCASTSS ·logf+76(SB), Z24; \
	VBROADCASTSS ·logf+28(SB), Z25

#define LOG(A) \
	VCMPPS.BCST $1, ·logf+0(SB), A, K1; \
	VMOVAPS A, Z8; \
	VMULPS.BCST ·logf+4(SB), A, K1, Z8; \
	VMOVAPS.Z Z21, K1, Z9; \
	VPADDD.BCST ·logf+12(SB), Z8, Z8; \
	VPSRAD $23, Z8, Z10; \
	VPSUBD.BCST ·logf+20(SB), Z10, Z10; \
	VCVTDQ2PS Z10, Z10; \
	VADDPS Z10, Z9, Z9; \
	VPANDD.BCST ·logf+24(SB), Z8, Z8; \
	VPADDD.BCST ·logf+16(SB), Z8, Z8; \
	VSUBPS Z17, Z8, Z8; \
	VMOVAPS Z25, Z10; \
	VFMADD213PS.BCST ·logf+32(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+36(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+40(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+44(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+48(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+52(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+56(SB), Z8, Z10; \
	VFMADD213PS.BCST ·logf+60(SB), Z8, Z10; \
	VMULPS Z8, Z8, Z11; \
	VMULPS Z8, Z10, Z10; \
	VMULPS Z11, Z10, Z10; \
	VFMADD231PS.BCST ·logf+64(SB), Z9, Z10; \
	VFNMADD231PS.BCST ·logf+72(SB), Z11, Z10; \
	VADDPS Z8, Z10, Z10; \
	VFMADD231PS.BCST ·logf+68(SB), Z9, Z10; \
	VCMPPS $0, Z24, A, K1; \
	VMOVAPS Z24, K1, Z10; \
	VCMPPS $0, Z16, A, K1; \
	VMOVAPS Z22, K1, Z10; \
	VCMPPS $9, Z16, A, K1; \
	VMOVAPS Z23, K1, Z10; \
	VMOVAPS Z10, A
