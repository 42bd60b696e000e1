//go:build !noasm

#include "go_asm.h"
#include "textflag.h"
#include "each8_amd64.h"
#include "exp_avx2_amd64.h"
#include "log_avx2_amd64.h"

// Loops over blocks of float32, eight at a time (AVX2).

// func run(k kernel, d, x, y *float32, s float32, n int)
// Kernel k on n numbers from d, x and y on: it finds their addresses in DI, SI and
// DX, n in CX, s in Y2, and Y3 = 1, Y4 = sign bit, Y5 = 0.
TEXT ·run(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ k+0(FP), AX
	MOVQ d+8(FP), DI
	MOVQ x+16(FP), SI
	MOVQ y+24(FP), DX
	VBROADCASTSS s+32(FP), Y2
	MOVQ n+40(FP), CX
	VPCMPEQD Y3, Y3, Y3
	VPSLLD $31, Y3, Y4
	VPSLLD $25, Y3, Y3
	VPSRLD $2, Y3, Y3
	VXORPS Y5, Y5, Y5
	LEAQ kernels<>(SB), BX
	MOVQ (BX)(AX*8), AX
	JMP AX

// A kernel and its place in the table, which grows in the order of this file.
#define KERNEL(name, k) \
DATA kernels<>+k*8(SB)/8, $name<>(SB); \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0

// The next eight, or the end.
#define NEXT \
	VMOVUPS Y0, (DI); \
	ADDQ $32, SI; \
	ADDQ $32, DI; \
	SUBQ $8, CX; \
	JNZ loop; \
	VZEROUPPER; \
	RET

// BODY computes Y0 from Y1 (of x) and Y2 (of y), for n a multiple of 8 and not 0.
#define VV(name, k, BODY) \
KERNEL(name, k); \
loop: \
	VMOVUPS (SI), Y1; \
	VMOVUPS (DX), Y2; \
	BODY; \
	ADDQ $32, DX; \
	NEXT

// BODY computes Y0 from Y1 (of x) and Y2, the number s.
#define VS(name, k, BODY) \
KERNEL(name, k); \
loop: \
	VMOVUPS (SI), Y1; \
	BODY; \
	NEXT

// BODY changes a register, with the number s in Y15, for any n but 0: what is left of n goes through the same code in a
// vector of which the rest is masked, so a number's function has the same bits
// wherever it lies.
#define ANY(name, k, BODY) \
KERNEL(name, k); \
	VMOVAPS Y2, Y15; \
	EACH8(BODY)

// From lanes+32−4n on, n words of ones, then zeros: the mask of n lanes.
DATA ·lanes+0(SB)/8, $0xffffffffffffffff
DATA ·lanes+8(SB)/8, $0xffffffffffffffff
DATA ·lanes+16(SB)/8, $0xffffffffffffffff
DATA ·lanes+24(SB)/8, $0xffffffffffffffff
GLOBL ·lanes(SB), RODATA|NOPTR, $64

// The instructions give the first operand, as written here, if both are zeros or either
// is NaN. So zeros are combined in both orders: the bits of others are equal. All bits
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

VV(addVV, const_addVV8, SUM)
VV(subVV, const_subVV8, DIFFERENCE)
VV(mulVV, const_mulVV8, PRODUCT)
VV(divVV, const_divVV8, QUOTIENT)
VV(maxVV, const_maxVV8, MAXIMUM)
VV(minVV, const_minVV8, MINIMUM)
VV(gtVV, const_gtVV8, GREATER)
VV(eqVV, const_eqVV8, EQUAL)

VS(addVS, const_addVS8, SUM)
VS(subVS, const_subVS8, DIFFERENCE)
VS(subSV, const_subSV8, REVERSE)
VS(mulVS, const_mulVS8, PRODUCT)
VS(divVS, const_divVS8, QUOTIENT)
VS(divSV, const_divSV8, INVERSE)
VS(maxVS, const_maxVS8, MAXIMUM)
VS(minVS, const_minVS8, MINIMUM)
VS(gtVS, const_gtVS8, GREATER)
VS(gtSV, const_gtSV8, LESS)
VS(eqVS, const_eqVS8, EQUAL)
VS(leakyRelu, const_leakyRelu8, LEAKY)
VS(leakyStep, const_leakyStep8, LEAKYSTEP)
VS(neg, const_neg8, NEGATE)
VS(abs, const_abs8, ABSOLUTE)
VS(sqrt, const_sqrt8, ROOT)

ANY(exp, const_exp8, EXPONENTIAL)
ANY(elu, const_elu8, ELU)
ANY(eluD, const_eluD8, ELUD)
ANY(eluDD, const_eluDD8, ELUDD)
ANY(sigmoid, const_sigmoid8, SIGMOID)
ANY(tanh, const_tanh8, TANH)
ANY(softplus, const_softplus8, SOFTPLUS)
ANY(log, const_log8, LOG)

GLOBL kernels<>(SB), RODATA|NOPTR, $(const_numKernels*8)

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
