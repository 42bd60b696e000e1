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
