//go:build !noasm

#include "textflag.h"

#define ZERO(s0, s1, s2, s3) \
	VEOR s0.B16, s0.B16, s0.B16 \
	VEOR s1.B16, s1.B16, s1.B16 \
	VEOR s2.B16, s2.B16, s2.B16 \
	VEOR s3.B16, s3.B16, s3.B16

// ROW is one row of the micro-tile at one k: s0 … s3 += a·(V24 … V27); a goes on.
#define ROW(a, x, s0, s1, s2, s3) \
	VLD1R (a), [x.S4] \
	ADD   R2, a, a \
	VFMLA V24.S4, x.S4, s0.S4 \
	VFMLA V25.S4, x.S4, s1.S4 \
	VFMLA V26.S4, x.S4, s2.S4 \
	VFMLA V27.S4, x.S4, s3.S4

// PLACE makes R6 the address of row r of C.
#define PLACE(r) \
	MOVD (8*r)(R5), R6 \
	ADD  R6<<2, R4, R6

// SET stores row r and leaves if it was the last; SUM adds it, as a product with
// 1, V28, for the assembler has no sum of vectors: the bits are those of a sum.
#define SET(r, s0, s1, s2, s3) \
	PLACE(r) \
	VST1 [s0.S4, s1.S4, s2.S4, s3.S4], (R6) \
	CMP  $(r+1), R7 \
	BEQ  done

#define SUM(r, s0, s1, s2, s3) \
	PLACE(r) \
	VLD1  (R6), [V24.S4, V25.S4, V26.S4, V27.S4] \
	VFMLA V28.S4, s0.S4, V24.S4 \
	VFMLA V28.S4, s1.S4, V25.S4 \
	VFMLA V28.S4, s2.S4, V26.S4 \
	VFMLA V28.S4, s3.S4, V27.S4 \
	VST1  [V24.S4, V25.S4, V26.S4, V27.S4], (R6) \
	CMP   $(r+1), R7 \
	BEQ   done

// func kernel6x16(k int, a *float32, rs, ks int, b, c *float32, off *[MaxMR]int, rows int, add bool)
//
// Row r of the micro-tile is V(4r) … V(4r+3). R8 … R13 point at the rows of a at the
// current k; R1 and R2 are the strides in bytes.
TEXT ·kernel6x16(SB), NOSPLIT, $0-65
	MOVD k+0(FP), R0
	MOVD a+8(FP), R8
	MOVD rs+16(FP), R1
	MOVD ks+24(FP), R2
	MOVD b+32(FP), R3
	LSL  $2, R1
	LSL  $2, R2
	ADD  R1, R8, R9
	ADD  R1, R9, R10
	ADD  R1, R10, R11
	ADD  R1, R11, R12
	ADD  R1, R12, R13
	ZERO(V0, V1, V2, V3)
	ZERO(V4, V5, V6, V7)
	ZERO(V8, V9, V10, V11)
	ZERO(V12, V13, V14, V15)
	ZERO(V16, V17, V18, V19)
	ZERO(V20, V21, V22, V23)

loop: // for l := range k
	VLD1.P 64(R3), [V24.S4, V25.S4, V26.S4, V27.S4]
	ROW(R8, V28, V0, V1, V2, V3)
	ROW(R9, V29, V4, V5, V6, V7)
	ROW(R10, V30, V8, V9, V10, V11)
	ROW(R11, V31, V12, V13, V14, V15)
	ROW(R12, V28, V16, V17, V18, V19)
	ROW(R13, V29, V20, V21, V22, V23)
	SUBS $1, R0
	BNE  loop

	MOVD c+40(FP), R4
	MOVD off+48(FP), R5
	MOVD rows+56(FP), R7
	MOVBU add+64(FP), R0
	CBNZ R0, sum

	SET(0, V0, V1, V2, V3)
	SET(1, V4, V5, V6, V7)
	SET(2, V8, V9, V10, V11)
	SET(3, V12, V13, V14, V15)
	SET(4, V16, V17, V18, V19)
	SET(5, V20, V21, V22, V23)
	JMP done

sum:
	FMOVS $1.0, F28
	VDUP  V28.S[0], V28.S4
	SUM(0, V0, V1, V2, V3)
	SUM(1, V4, V5, V6, V7)
	SUM(2, V8, V9, V10, V11)
	SUM(3, V12, V13, V14, V15)
	SUM(4, V16, V17, V18, V19)
	SUM(5, V20, V21, V22, V23)

done:
	RET
