//go:build !noasm

#include "go_asm.h"
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

// func sum6x16(t *Tile)
//
// Row r of the micro-tile is V(4r) … V(4r+3). R8 … R13 point at the rows of a at the
// current k; R1, R2 and R14 are the strides of rows, of the depth and of b in bytes; R15
// takes a pointer from the end of a segment to the next.
TEXT ·sum6x16(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R4
	MOVD Tile_A(R4), R8
	MOVD Tile_RS(R4), R1
	MOVD Tile_KS(R4), R2
	MOVD Tile_Segment(R4), R15
	MOVD Tile_B(R4), R3
	MOVD Tile_BS(R4), R14
	MOVD Tile_K(R4), R19
	MOVD Tile_Segments(R4), R20
	MUL  R2, R19, R0
	SUB  R0, R15, R15
	LSL  $2, R1
	LSL  $2, R2
	LSL  $2, R14
	LSL  $2, R15
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

segment:
	MOVD R19, R0

loop:
	VLD1 (R3), [V24.S4, V25.S4, V26.S4, V27.S4]
	ADD  R14, R3, R3
	ROW(R8, V28, V0, V1, V2, V3)
	ROW(R9, V29, V4, V5, V6, V7)
	ROW(R10, V30, V8, V9, V10, V11)
	ROW(R11, V31, V12, V13, V14, V15)
	ROW(R12, V28, V16, V17, V18, V19)
	ROW(R13, V29, V20, V21, V22, V23)
	SUBS $1, R0
	BNE  loop
	ADD  R15, R8, R8
	ADD  R15, R9, R9
	ADD  R15, R10, R10
	ADD  R15, R11, R11
	ADD  R15, R12, R12
	ADD  R15, R13, R13
	SUBS $1, R20
	BNE  segment

	MOVD  Tile_Off(R4), R5
	MOVD  Tile_Rows(R4), R7
	MOVBU Tile_Add(R4), R0
	MOVD  Tile_C(R4), R4
	CBNZ  R0, sum

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
