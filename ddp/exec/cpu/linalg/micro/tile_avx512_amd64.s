//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The float32 kernels of type Tile for AVX-512. Rows go by fours: R8 … R13 point at rows
// 0, 4, … 20 of a at the current k; AX, DX and BX are once and three times the stride of
// rows, and that of the depth, R15 that of b, all in bytes; R14 takes a pointer from the
// end of a segment to the next. K1 and K2 say which columns there are.
#define BEGIN \
	MOVQ  t+0(FP), SI \
	MOVQ  Tile_Cols(SI), CX \
	MOVQ  $-1, AX \
	SHLQ  CX, AX \
	NOTQ  AX \
	KMOVW AX, K1 \
	SHRQ  $16, AX \
	KMOVW AX, K2 \
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
	LEAQ  (R8)(AX*4), R9 \
	LEAQ  (R9)(AX*4), R10 \
	MOVQ  Tile_Rows(SI), R12 \
	MOVQ  Tile_Segments(SI), SI

// FETCH has the second cache fetch the rows of C, up to 32 columns, while sums are taken:
// else each store waits. In the first, rows a power of two apart would drive out a and b.
#define FETCH \
	MOVQ t+0(FP), SI \
	MOVQ Tile_C(SI), DX \
	MOVQ Tile_Rows(SI), CX \
	MOVQ Tile_Off(SI), DI \
fetch: \
	MOVQ       (DI), AX \
	LEAQ       (DX)(AX*4), AX \
	PREFETCHT1 (AX) \
	PREFETCHT1 64(AX) \
	ADDQ       $8, DI \
	DECQ       CX \
	JNZ        fetch

#define ZERO4(a, b, c, d) \
	VPXORD a, a, a \
	VPXORD b, b, b \
	VPXORD c, c, c \
	VPXORD d, d, d

#define ZERO24 \
	ZERO4(Z0, Z1, Z2, Z3) \
	ZERO4(Z4, Z5, Z6, Z7) \
	ZERO4(Z8, Z9, Z10, Z11) \
	ZERO4(Z12, Z13, Z14, Z15) \
	ZERO4(Z16, Z17, Z18, Z19) \
	ZERO4(Z20, Z21, Z22, Z23)

// DEPTH is the depth of a segment, to be counted down.
#define DEPTH \
	MOVQ t+0(FP), CX \
	MOVQ Tile_K(CX), CX

// WIDE is one row of two vectors at one k, WIDE4 four of them.
#define WIDE(a, x, lo, hi) \
	VBROADCASTSS a, x \
	VFMADD231PS  Z24, x, lo \
	VFMADD231PS  Z25, x, hi

#define WIDE4(p, z0, z1, z2, z3, z4, z5, z6, z7) \
	WIDE((p), Z26, z0, z1) \
	WIDE((p)(AX*1), Z27, z2, z3) \
	WIDE((p)(AX*2), Z28, z4, z5) \
	WIDE((p)(DX*1), Z29, z6, z7) \
	ADDQ BX, p

// WIDEB and NARROWB are a row of b. Rows are fetched 32 and, where there is no register
// for that, 8 in advance: the processor does not see that b goes on where its rows are
// parts of longer ones.
#define WIDEB \
	VMOVUPS.Z  (DI), K1, Z24 \
	VMOVUPS.Z  64(DI), K2, Z25 \
	PREFETCHT0 (DI)(R13*1) \
	PREFETCHT0 64(DI)(R13*1) \
	ADDQ       R15, DI

// NARROW4 is four rows of one vector at one k.
#define NARROW4(p, z0, z1, z2, z3) \
	VFMADD231PS.BCST (p), Z24, z0 \
	VFMADD231PS.BCST (p)(AX*1), Z24, z1 \
	VFMADD231PS.BCST (p)(AX*2), Z24, z2 \
	VFMADD231PS.BCST (p)(DX*1), Z24, z3 \
	ADDQ             BX, p

#define NARROWB \
	VMOVUPS.Z  (DI), K1, Z24 \
	PREFETCHT0 (DI)(R15*8) \
	ADDQ       R15, DI

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
	VMOVUPS lo, K1, (R13) \
	VMOVUPS hi, K2, 64(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define ADDWIDE(r, lo, hi) \
	PLACE(r) \
	VADDPS  (R13), lo, K1, lo \
	VADDPS  64(R13), hi, K2, hi \
	VMOVUPS lo, K1, (R13) \
	VMOVUPS hi, K2, 64(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define SETNARROW(r, z) \
	PLACE(r) \
	VMOVUPS z, K1, (R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define ADDNARROW(r, z) \
	PLACE(r) \
	VADDPS  (R13), z, K1, z \
	VMOVUPS z, K1, (R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define EACHWIDE(DO) \
	DO(0, Z0, Z1) \
	DO(1, Z2, Z3) \
	DO(2, Z4, Z5) \
	DO(3, Z6, Z7) \
	DO(4, Z8, Z9) \
	DO(5, Z10, Z11) \
	DO(6, Z12, Z13) \
	DO(7, Z14, Z15) \
	DO(8, Z16, Z17) \
	DO(9, Z18, Z19) \
	DO(10, Z20, Z21) \
	DO(11, Z22, Z23)

#define EACHNARROW(DO) \
	DO(0, Z0) \
	DO(1, Z1) \
	DO(2, Z2) \
	DO(3, Z3) \
	DO(4, Z4) \
	DO(5, Z5) \
	DO(6, Z6) \
	DO(7, Z7) \
	DO(8, Z8) \
	DO(9, Z9) \
	DO(10, Z10) \
	DO(11, Z11) \
	DO(12, Z12) \
	DO(13, Z13) \
	DO(14, Z14) \
	DO(15, Z15) \
	DO(16, Z16) \
	DO(17, Z17) \
	DO(18, Z18) \
	DO(19, Z19) \
	DO(20, Z20) \
	DO(21, Z21) \
	DO(22, Z22) \
	DO(23, Z23)

// func wideAVX512(t *Tile)
TEXT ·wideAVX512(SB), NOSPLIT, $0-8
	FETCH
	BEGIN
	MOVQ R15, R13
	SHLQ $5, R13 // 32 rows of b
	ZERO24
	CMPQ R12, $4
	JLE  segment4
	CMPQ R12, $8
	JLE  segment8

segment12:
	DEPTH

rows12:
	WIDEB
	WIDE4(R8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	WIDE4(R9, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	WIDE4(R10, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
	DECQ CX
	JNZ  rows12
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	DECQ SI
	JNZ  segment12
	JMP  store

segment8:
	DEPTH

rows8:
	WIDEB
	WIDE4(R8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	WIDE4(R9, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	DECQ CX
	JNZ  rows8
	ADDQ R14, R8
	ADDQ R14, R9
	DECQ SI
	JNZ  segment8
	JMP  store

segment4:
	DEPTH

rows4:
	WIDEB
	WIDE4(R8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	DECQ CX
	JNZ  rows4
	ADDQ R14, R8
	DECQ SI
	JNZ  segment4
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

// func narrowAVX512(t *Tile)
TEXT ·narrowAVX512(SB), NOSPLIT, $0-8
	BEGIN
	ZERO24
	CMPQ R12, $4
	JLE  segment4
	CMPQ R12, $8
	JLE  segment8
	CMPQ R12, $12
	JLE  segment12
	MOVQ R12, CX
	LEAQ (R10)(AX*4), R11
	LEAQ (R11)(AX*4), R12
	LEAQ (R12)(AX*4), R13
	CMPQ CX, $16
	JLE  segment16
	CMPQ CX, $20
	JLE  segment20

segment24:
	DEPTH

rows24:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	NARROW4(R9, Z4, Z5, Z6, Z7)
	NARROW4(R10, Z8, Z9, Z10, Z11)
	NARROW4(R11, Z12, Z13, Z14, Z15)
	NARROW4(R12, Z16, Z17, Z18, Z19)
	NARROW4(R13, Z20, Z21, Z22, Z23)
	DECQ CX
	JNZ  rows24
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	ADDQ R14, R11
	ADDQ R14, R12
	ADDQ R14, R13
	DECQ SI
	JNZ  segment24
	JMP  store

segment20:
	DEPTH

rows20:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	NARROW4(R9, Z4, Z5, Z6, Z7)
	NARROW4(R10, Z8, Z9, Z10, Z11)
	NARROW4(R11, Z12, Z13, Z14, Z15)
	NARROW4(R12, Z16, Z17, Z18, Z19)
	DECQ CX
	JNZ  rows20
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	ADDQ R14, R11
	ADDQ R14, R12
	DECQ SI
	JNZ  segment20
	JMP  store

segment16:
	DEPTH

rows16:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	NARROW4(R9, Z4, Z5, Z6, Z7)
	NARROW4(R10, Z8, Z9, Z10, Z11)
	NARROW4(R11, Z12, Z13, Z14, Z15)
	DECQ CX
	JNZ  rows16
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	ADDQ R14, R11
	DECQ SI
	JNZ  segment16
	JMP  store

segment12:
	DEPTH

rows12:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	NARROW4(R9, Z4, Z5, Z6, Z7)
	NARROW4(R10, Z8, Z9, Z10, Z11)
	DECQ CX
	JNZ  rows12
	ADDQ R14, R8
	ADDQ R14, R9
	ADDQ R14, R10
	DECQ SI
	JNZ  segment12
	JMP  store

segment8:
	DEPTH

rows8:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	NARROW4(R9, Z4, Z5, Z6, Z7)
	DECQ CX
	JNZ  rows8
	ADDQ R14, R8
	ADDQ R14, R9
	DECQ SI
	JNZ  segment8
	JMP  store

segment4:
	DEPTH

rows4:
	NARROWB
	NARROW4(R8, Z0, Z1, Z2, Z3)
	DECQ CX
	JNZ  rows4
	ADDQ R14, R8
	DECQ SI
	JNZ  segment4
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
