//go:build !noasm

#include "textflag.h"

// Loops over blocks of float32, eight at a time (AVX2): n is a multiple of 8
// and not 0. The macros take the name of the function and the instructions
// that compute Y0 from Y1 (x), Y2 (y or the number s), with Y3 … Y5 as set by
// the caller.

#define VV(name, BODY) \
TEXT name(SB), NOSPLIT, $0-32; \
	MOVQ d+0(FP), DI; \
	MOVQ x+8(FP), SI; \
	MOVQ y+16(FP), DX; \
	MOVQ n+24(FP), CX; \
	CONSTANTS; \
loop: \
	VMOVUPS (SI), Y1; \
	VMOVUPS (DX), Y2; \
	BODY; \
	VMOVUPS Y0, (DI); \
	ADDQ $32, SI; \
	ADDQ $32, DX; \
	ADDQ $32, DI; \
	SUBQ $8, CX; \
	JNZ loop; \
	VZEROUPPER; \
	RET

#define VS(name, BODY) \
TEXT name(SB), NOSPLIT, $0-32; \
	MOVQ d+0(FP), DI; \
	MOVQ x+8(FP), SI; \
	VBROADCASTSS s+16(FP), Y2; \
	MOVQ n+24(FP), CX; \
	CONSTANTS; \
loop: \
	VMOVUPS (SI), Y1; \
	BODY; \
	VMOVUPS Y0, (DI); \
	ADDQ $32, SI; \
	ADDQ $32, DI; \
	SUBQ $8, CX; \
	JNZ loop; \
	VZEROUPPER; \
	RET

// Y3 = 1, Y4 = sign bit, Y5 = 0.
#define CONSTANTS \
	VPCMPEQD Y3, Y3, Y3; \
	VPSLLD $31, Y3, Y4; \
	VPSLLD $25, Y3, Y3; \
	VPSRLD $2, Y3, Y3; \
	VXORPS Y5, Y5, Y5

// The instructions give their last operand if both are zeros or either is NaN.
// So zeros are combined in both orders: the bits of others are equal. All bits
// set is a NaN.
#define MAXIMUM VMAXPS Y2, Y1, Y0; VMAXPS Y1, Y2, Y6; VANDPS Y6, Y0, Y0; VCMPPS $3, Y2, Y1, Y6; VORPS Y6, Y0, Y0
#define MINIMUM VMINPS Y2, Y1, Y0; VMINPS Y1, Y2, Y6; VORPS Y6, Y0, Y0; VCMPPS $3, Y2, Y1, Y6; VORPS Y6, Y0, Y0
#define SUM VADDPS Y2, Y1, Y0
#define DIFFERENCE VSUBPS Y2, Y1, Y0
#define REVERSE VSUBPS Y1, Y2, Y0
#define PRODUCT VMULPS Y2, Y1, Y0
#define QUOTIENT VDIVPS Y2, Y1, Y0
#define INVERSE VDIVPS Y1, Y2, Y0
#define NEGATE VXORPS Y4, Y1, Y0
#define ABSOLUTE VANDNPS Y1, Y4, Y0
#define ROOT VSQRTPS Y1, Y0
#define GREATER VCMPPS $0x1e, Y2, Y1, Y0; VANDPS Y3, Y0, Y0
#define LESS VCMPPS $0x11, Y2, Y1, Y0; VANDPS Y3, Y0, Y0
#define EQUAL VCMPPS $0, Y2, Y1, Y0; VANDPS Y3, Y0, Y0
#define LEAKY VMULPS Y2, Y1, Y0; VCMPPS $0x1e, Y5, Y1, Y6; VBLENDVPS Y6, Y1, Y0, Y0
#define LEAKYSTEP VCMPPS $0x1e, Y5, Y1, Y6; VBLENDVPS Y6, Y3, Y2, Y0

VV(·addVV8, SUM)
VV(·subVV8, DIFFERENCE)
VV(·mulVV8, PRODUCT)
VV(·divVV8, QUOTIENT)
VV(·maxVV8, MAXIMUM)
VV(·minVV8, MINIMUM)
VV(·gtVV8, GREATER)
VV(·eqVV8, EQUAL)

VS(·addVS8, SUM)
VS(·subSV8, REVERSE)
VS(·mulVS8, PRODUCT)
VS(·divVS8, QUOTIENT)
VS(·divSV8, INVERSE)
VS(·maxVS8, MAXIMUM)
VS(·minVS8, MINIMUM)
VS(·gtVS8, GREATER)
VS(·gtSV8, LESS)
VS(·eqVS8, EQUAL)
VS(·leakyRelu8, LEAKY)
VS(·leakyStep8, LEAKYSTEP)
VS(·neg8, NEGATE)
VS(·abs8, ABSOLUTE)
VS(·sqrt8, ROOT)

// func select8(d, c, x, y *float32, n int)
TEXT ·select8(SB), NOSPLIT, $0-40
	MOVQ d+0(FP), DI
	MOVQ c+8(FP), AX
	MOVQ x+16(FP), SI
	MOVQ y+24(FP), DX
	MOVQ n+32(FP), CX
	VXORPS Y5, Y5, Y5

loop:
	VMOVUPS (AX), Y0
	VMOVUPS (SI), Y1
	VMOVUPS (DX), Y2
	VCMPPS $4, Y5, Y0, Y6
	VBLENDVPS Y6, Y1, Y2, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, AX
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func sumAll16(x *float32, n int) float64
// Four chains of four sums each; n is a multiple of 16 and not 0.
TEXT ·sumAll16(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3

loop:
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ loop
	VADDPD Y1, Y0, Y0
	VADDPD Y3, Y2, Y2
	VADDPD Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPD X1, X0, X0
	VHADDPD X0, X0, X0
	VZEROUPPER
	MOVSD X0, ret+16(FP)
	RET

// func sumColumns16(acc *float64, x *float32, rows, stride int)
// acc[c] += Σ x[r·stride + c], c < 16; rows is not 0.
TEXT ·sumColumns16(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ rows+16(FP), CX
	MOVQ stride+24(FP), DX
	SHLQ $2, DX
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3

loop:
	VCVTPS2PD (SI), Y4
	VCVTPS2PD 16(SI), Y5
	VCVTPS2PD 32(SI), Y6
	VCVTPS2PD 48(SI), Y7
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	ADDQ DX, SI
	DECQ CX
	JNZ loop
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	VZEROUPPER
	RET

// func sumColumns4(acc *float64, x *float32, rows, stride int)
// acc[c] += Σ x[r·stride + c], c < 4; rows is not 0.
TEXT ·sumColumns4(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ rows+16(FP), CX
	MOVQ stride+24(FP), DX
	SHLQ $2, DX
	VMOVUPD (DI), Y0

loop:
	VCVTPS2PD (SI), Y4
	VADDPD Y4, Y0, Y0
	ADDQ DX, SI
	DECQ CX
	JNZ loop
	VMOVUPD Y0, (DI)
	VZEROUPPER
	RET
