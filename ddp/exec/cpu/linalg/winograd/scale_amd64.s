//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// NORMS makes, of sums of squares s, the factors c/‖x‖ (up) and ‖x‖/c (down), c in
// Z30, 1/c in Z28. Norms count as at least √Z29, but NaN stays NaN: of one and
// a number MAX gives the first operand, as written here.
#define NORMS(s, up, down) \
	VMAXPS  s, Z29, s \
	VSQRTPS s, s \
	VDIVPS  s, Z30, up \
	VMULPS  s, Z28, down

#define CONSTANTS \
	VBROADCASTSS ·scaleConstants+0(SB), Z30 \
	VBROADCASTSS ·scaleConstants+4(SB), Z29 \
	VBROADCASTSS ·scaleConstants+8(SB), Z28

// func scaleRows(p *rowScaling)
//
// SI, DI: row of src, dst; R10: its scale; DX: rows to go.
TEXT ·scaleRows(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), R13
	MOVQ rowScaling_dst(R13), DI
	MOVQ rowScaling_dstStep(R13), R8
	MOVQ rowScaling_src(R13), SI
	MOVQ rowScaling_srcStep(R13), R9
	MOVQ rowScaling_scales(R13), R10
	MOVQ rowScaling_scaleStep(R13), R11
	MOVQ rowScaling_vectors(R13), R12
	MOVQ rowScaling_rows(R13), DX
	CONSTANTS

row:
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	MOVQ   SI, AX
	MOVQ   R12, CX
	SUBQ   $2, CX
	JLT    odd

squares: // two vectors at a time
	VMOVUPS     (AX), Z2
	VMOVUPS     64(AX), Z3
	VFMADD231PS Z2, Z2, Z0
	VFMADD231PS Z3, Z3, Z1
	ADDQ        $128, AX
	SUBQ        $2, CX
	JGE         squares

odd:
	CMPQ        CX, $-2
	JE          norm
	VMOVUPS     (AX), Z2
	VFMADD231PS Z2, Z2, Z0

norm:
	VADDPS        Z1, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	VPERMILPS     $0x4e, X0, X1
	VADDPS        X1, X0, X0
	VPERMILPS     $0xb1, X0, X1
	VADDPS        X1, X0, X0
	VMAXSS        X0, X29, X0
	VSQRTSS       X0, X0, X0
	VDIVSS        X0, X30, X4
	VMULSS        X0, X28, X5
	VMOVSS        X5, (R10)
	VBROADCASTSS  X4, Z4
	MOVQ          SI, AX
	MOVQ          DI, BX
	MOVQ          R12, CX

round:
	VMULPS    (AX), Z4, Z2
	VCVTPS2DQ Z2, Z2
	VPMOVSDW  Z2, (BX)
	ADDQ      $64, AX
	ADDQ      $32, BX
	DECQ      CX
	JNZ       round

	ADDQ R8, DI
	ADDQ R9, SI
	ADDQ R11, R10
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET

// func scaleColumns(dst *uint32, dstStep int, src *float32, srcStep int, scales *float32, rows int)
//
// Steps are in bytes. Two rows at a time: (Z0, Z1) sums the even rows' squares, (Z2,
// Z3) the odd ones'.
TEXT ·scaleColumns(SB), NOSPLIT, $0-48
	MOVQ   dst+0(FP), DI
	MOVQ   dstStep+8(FP), R8
	MOVQ   src+16(FP), SI
	MOVQ   srcStep+24(FP), R9
	MOVQ   scales+32(FP), R10
	MOVQ   rows+40(FP), DX
	SHRQ   $1, DX
	CONSTANTS
	MOVL   $0xaaaaaaaa, AX
	KMOVD  AX, K1              // the upper half of each word
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ   SI, AX
	MOVQ   DX, CX

squares:
	VMOVUPS     (AX), Z4
	VMOVUPS     64(AX), Z5
	VMOVUPS     (AX)(R9*1), Z6
	VMOVUPS     64(AX)(R9*1), Z7
	VFMADD231PS Z4, Z4, Z0
	VFMADD231PS Z5, Z5, Z1
	VFMADD231PS Z6, Z6, Z2
	VFMADD231PS Z7, Z7, Z3
	LEAQ        (AX)(R9*2), AX
	DECQ        CX
	JNZ         squares

	VADDPS  Z2, Z0, Z0
	VADDPS  Z3, Z1, Z1
	NORMS(Z0, Z8, Z10)
	NORMS(Z1, Z9, Z11)
	VMOVUPS Z10, (R10)
	VMOVUPS Z11, 64(R10)

round:
	VMULPS    (SI), Z8, Z4
	VMULPS    64(SI), Z9, Z5
	VMULPS    (SI)(R9*1), Z8, Z6
	VMULPS    64(SI)(R9*1), Z9, Z7
	VCVTPS2DQ Z4, Z4
	VCVTPS2DQ Z5, Z5
	VCVTPS2DQ Z6, Z6
	VCVTPS2DQ Z7, Z7
	VPSLLD    $16, Z6, Z6
	VPSLLD    $16, Z7, Z7
	VMOVDQU16 Z6, K1, Z4
	VMOVDQU16 Z7, K1, Z5
	VMOVDQU32 Z4, (DI)
	VMOVDQU32 Z5, 64(DI)
	LEAQ      (SI)(R9*2), SI
	ADDQ      R8, DI
	DECQ      DX
	JNZ       round
	VZEROUPPER
	RET
