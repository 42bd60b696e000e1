//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The float32 kernels of type Tile for AVX2, whole vectors of columns only. Rows go by
// threes: R8 … R11 point at rows 0, 3, 6 and 9 of a at the current k; AX and BX are the
// strides of rows and of the depth, R15 that of b, in bytes; R14 takes a pointer from the
// end of a segment to the next.
#define BEGIN \
	MOVQ  t+0(FP), SI \
	MOVQ  Tile_A(SI), R8 \
	MOVQ  Tile_B(SI), DI \
	MOVQ  Tile_RS(SI), AX \
	MOVQ  Tile_KS(SI), BX \
	MOVQ  Tile_BS(SI), R15 \
	MOVQ  Tile_K(SI), CX \
	IMULQ BX, CX \
	MOVQ  Tile_Segment(SI), R14 \
	SUBQ  CX, R14 \
	SHLQ  $2, AX \
	SHLQ  $2, BX \
	SHLQ  $2, R14 \
	SHLQ  $2, R15 \
	LEAQ  (AX)(AX*2), DX \
	LEAQ  (R8)(DX*1), R9 \
	LEAQ  (R9)(DX*1), R10 \
	LEAQ  (R10)(DX*1), R11 \
	MOVQ  Tile_Rows(SI), R12 \
	MOVQ  Tile_Segments(SI), SI

#define ZERO3(a, b, c) \
	VXORPS a, a, a \
	VXORPS b, b, b \
	VXORPS c, c, c

#define ZERO12 \
	ZERO3(Y0, Y1, Y2) \
	ZERO3(Y3, Y4, Y5) \
	ZERO3(Y6, Y7, Y8) \
	ZERO3(Y9, Y10, Y11)

// DEPTH is the depth of a segment, to be counted down.
#define DEPTH \
	MOVQ t+0(FP), CX \
	MOVQ Tile_K(CX), CX

// WIDE is one row of two vectors at one k, WIDE3 three of them.
#define WIDE(a, x, lo, hi) \
	VBROADCASTSS a, x \
	VFMADD231PS  Y12, x, lo \
	VFMADD231PS  Y13, x, hi

#define WIDE3(p, y0, y1, y2, y3, y4, y5) \
	WIDE((p), Y14, y0, y1) \
	WIDE((p)(AX*1), Y15, y2, y3) \
	WIDE((p)(AX*2), Y14, y4, y5) \
	ADDQ BX, p

#define WIDEB \
	VMOVUPS (DI), Y12 \
	VMOVUPS 32(DI), Y13 \
	ADDQ    R15, DI

// NARROW3 is three rows of one vector at one k.
#define NARROW(a, x, y) \
	VBROADCASTSS a, x \
	VFMADD231PS  Y12, x, y

#define NARROW3(p, y0, y1, y2) \
	NARROW((p), Y13, y0) \
	NARROW((p)(AX*1), Y14, y1) \
	NARROW((p)(AX*2), Y15, y2) \
	ADDQ BX, p

#define NARROWB \
	VMOVUPS (DI), Y12 \
	ADDQ    R15, DI

// END is the beginning of what stores: DX is C, SI the places of its rows.
#define END \
	MOVQ t+0(FP), AX \
	MOVQ Tile_C(AX), DX \
	MOVQ Tile_Off(AX), SI \
	MOVQ Tile_Rows(AX), R12 \
	CMPB Tile_Add(AX), $0 \
	JNE  add

#define PLACE(r) \
	MOVQ (8*r)(SI), R13 \
	LEAQ (DX)(R13*4), R13

// SETWIDE and SETNARROW store row r and leave if it was the last; ADDWIDE and ADDNARROW
// add it.
#define SETWIDE(r, lo, hi) \
	PLACE(r) \
	VMOVUPS lo, (R13) \
	VMOVUPS hi, 32(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define ADDWIDE(r, lo, hi) \
	PLACE(r) \
	VADDPS  (R13), lo, lo \
	VADDPS  32(R13), hi, hi \
	VMOVUPS lo, (R13) \
	VMOVUPS hi, 32(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define SETNARROW(r, y) \
	PLACE(r) \
	VMOVUPS y, (R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define ADDNARROW(r, y) \
	PLACE(r) \
	VADDPS  (R13), y, y \
	VMOVUPS y, (R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define EACHWIDE(DO) \
	DO(0, Y0, Y1) \
	DO(1, Y2, Y3) \
	DO(2, Y4, Y5) \
	DO(3, Y6, Y7) \
	DO(4, Y8, Y9) \
	DO(5, Y10, Y11)

#define EACHNARROW(DO) \
	DO(0, Y0) \
	DO(1, Y1) \
	DO(2, Y2) \
	DO(3, Y3) \
	DO(4, Y4) \
	DO(5, Y5) \
	DO(6, Y6) \
	DO(7, Y7) \
	DO(8, Y8) \
	DO(9, Y9) \
	DO(10, Y10) \
	DO(11, Y11)

// func wideAVX2(t *Tile)
TEXT ·wideAVX2(SB), NOSPLIT, $0-8
	BEGIN
	ZERO12
	CMPQ R12, $3
	JLE  segment3

segment6:
	DEPTH

rows6:
	WIDEB
	WIDE3(R8, Y0, Y1, Y2, Y3, Y4, Y5)
	WIDE3(R9, Y6, Y7, Y8, Y9, Y10, Y11)
	DECQ CX
	JNZ  rows6
	ADDQ R14, R8
	ADDQ R14, R9
	DECQ SI
	JNZ  segment6
	JMP  store

segment3:
	DEPTH

rows3:
	WIDEB
	WIDE3(R8, Y0, Y1, Y2, Y3, Y4, Y5)
	DECQ CX
	JNZ  rows3
	ADDQ R14, R8
	DECQ SI
	JNZ  segment3
	JMP  store

store:
	END
	EACHWIDE(SETWIDE)
	JMP done

add:
	EACHWIDE(ADDWIDE)

done:
	VZEROUPPER
	RET

// func narrowAVX2(t *Tile)
TEXT ·narrowAVX2(SB), NOSPLIT, $0-8
	BEGIN
	ZERO12
	CMPQ R12, $3
	JLE  segment3
	CMPQ R12, $6
	JLE  segment6
	CMPQ R12, $9
	JLE  segment9

segment12:
	DEPTH

rows12:
	NARROWB
	NARROW3(R8, Y0, Y1, Y2)
	NARROW3(R9, Y3, Y4, Y5)
	NARROW3(R10, Y6, Y7, Y8)
	NARROW3(R11, Y9, Y10, Y11)
	DECQ CX
	JNZ  rows12
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	ADDQ R14, R11
	DECQ SI
	JNZ  segment12
	JMP  store

segment9:
	DEPTH

rows9:
	NARROWB
	NARROW3(R8, Y0, Y1, Y2)
	NARROW3(R9, Y3, Y4, Y5)
	NARROW3(R10, Y6, Y7, Y8)
	DECQ CX
	JNZ  rows9
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	DECQ SI
	JNZ  segment9
	JMP  store

segment6:
	DEPTH

rows6:
	NARROWB
	NARROW3(R8, Y0, Y1, Y2)
	NARROW3(R9, Y3, Y4, Y5)
	DECQ CX
	JNZ  rows6
	ADDQ R14, R8
	ADDQ R14, R9
	DECQ SI
	JNZ  segment6
	JMP  store

segment3:
	DEPTH

rows3:
	NARROWB
	NARROW3(R8, Y0, Y1, Y2)
	DECQ CX
	JNZ  rows3
	ADDQ R14, R8
	DECQ SI
	JNZ  segment3
	JMP  store

store:
	END
	EACHNARROW(SETNARROW)
	JMP done

add:
	EACHNARROW(ADDNARROW)

done:
	VZEROUPPER
	RET
