//go:build !noasm

#include "textflag.h"

// Four elements of eight rows are transposed at a time; SI is the source, DI the
// destination. The last four elements may overlap those before them: so no row
// is read or written beyond its end, and no mask is needed (masked stores are
// slow on AMD's processors).

// START: BX is the offset of the first of four elements in a row, CX that of the
// last four, AX the distance of rows, R8 three times that; all in bytes.
#define START \
	SHLQ $2, AX \
	LEAQ (AX)(AX*2), R8 \
	LEAQ -16(CX*4), CX \
	XORQ BX, BX

// FURTHER goes on to the next four elements, or returns.
#define FURTHER \
	CMPQ BX, CX \
	JEQ  done \
	ADDQ $16, BX \
	CMPQ BX, CX \
	CMOVQGT CX, BX \
	JMP  four \
done: \
	VZEROUPPER \
	RET

// TRANSPOSE turns Y0 … Y3, in each half of 128 bits, by way of Y4 … Y7.
#define TRANSPOSE \
	VUNPCKLPS Y1, Y0, Y4 \
	VUNPCKHPS Y1, Y0, Y5 \
	VUNPCKLPS Y3, Y2, Y6 \
	VUNPCKHPS Y3, Y2, Y7 \
	VUNPCKLPD Y6, Y4, Y0 \
	VUNPCKHPD Y6, Y4, Y1 \
	VUNPCKLPD Y7, Y5, Y2 \
	VUNPCKHPD Y7, Y5, Y3

// TOCOLUMNS is eight rows at SI, rows 0 and 4 in a register and so on, to floats
// o/4 … o/4+7 of four columns.
#define TOCOLUMNS(o) \
	LEAQ (SI)(AX*4), R9 \
	VMOVUPS (SI), X0 \
	VMOVUPS (SI)(AX*1), X1 \
	VMOVUPS (SI)(AX*2), X2 \
	VMOVUPS (SI)(R8*1), X3 \
	VINSERTF128 $1, (R9), Y0, Y0 \
	VINSERTF128 $1, (R9)(AX*1), Y1, Y1 \
	VINSERTF128 $1, (R9)(AX*2), Y2, Y2 \
	VINSERTF128 $1, (R9)(R8*1), Y3, Y3 \
	TRANSPOSE \
	VMOVUPS Y0, (0+o)(DI) \
	VMOVUPS Y1, (64+o)(DI) \
	VMOVUPS Y2, (128+o)(DI) \
	VMOVUPS Y3, (192+o)(DI)

// TOROWS is the opposite.
#define TOROWS(o) \
	LEAQ (DI)(AX*4), R9 \
	VMOVUPS (0+o)(SI), Y0 \
	VMOVUPS (64+o)(SI), Y1 \
	VMOVUPS (128+o)(SI), Y2 \
	VMOVUPS (192+o)(SI), Y3 \
	TRANSPOSE \
	VMOVUPS X0, (DI) \
	VMOVUPS X1, (DI)(AX*1) \
	VMOVUPS X2, (DI)(AX*2) \
	VMOVUPS X3, (DI)(R8*1) \
	VEXTRACTF128 $1, Y0, (R9) \
	VEXTRACTF128 $1, Y1, (R9)(AX*1) \
	VEXTRACTF128 $1, Y2, (R9)(AX*2) \
	VEXTRACTF128 $1, Y3, (R9)(R8*1)

// func toColumnsAVX2(dst, src *float32, step, taps int): see type Kernels
TEXT ·toColumnsAVX2(SB), NOSPLIT, $0-32
	MOVQ step+16(FP), AX
	MOVQ taps+24(FP), CX
	START
four:
	MOVQ BX, DI
	SHLQ $4, DI
	ADDQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	ADDQ BX, SI
	TOCOLUMNS(0)
	LEAQ (SI)(AX*8), SI
	TOCOLUMNS(32)
	FURTHER

// func toRowsAVX2(dst *float32, step int, src *float32, taps int): see type Kernels
TEXT ·toRowsAVX2(SB), NOSPLIT, $0-32
	MOVQ step+8(FP), AX
	MOVQ taps+24(FP), CX
	START
four:
	MOVQ BX, SI
	SHLQ $4, SI
	ADDQ src+16(FP), SI
	MOVQ dst+0(FP), DI
	ADDQ BX, DI
	TOROWS(0)
	LEAQ (DI)(AX*8), DI
	TOROWS(32)
	FURTHER
