//go:build !noasm

#include "textflag.h"

// The tile machine (see tile.go) in AVX-512. A tile of 128 numbers, the
// accumulator, stays in Z0 … Z7. Each handler does one instruction on it and
// jumps to the next one's.
//
// R8 is the instruction {handler, base, counter, ·}, R9 the first one, R12 the
// counters {0, bytes into the block, bytes into the arrays, bytes into a block
// of sums}, CX the tiles that
// are left. Z8 … Z15 are the handlers' own; Z16 = 0, Z17 = 1, Z18 = sign bits,
// Z20 = NaN.

// func tileRun(code *tileOp, counters *[4]uintptr, tiles int)
TEXT ·tileRun(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ code+0(FP), R9
	MOVQ counters+8(FP), R12
	MOVQ tiles+16(FP), CX
	VPXORD Z16, Z16, Z16
	VPTERNLOGD $255, Z17, Z17, Z17
	VMOVAPS Z17, Z20
	VPSLLD $31, Z17, Z18
	VPSLLD $25, Z17, Z17
	VPSRLD $2, Z17, Z17
	MOVQ R9, R8
	MOVQ (R8), AX
	JMP AX

TEXT tileNext<>(SB), NOSPLIT|NOFRAME, $0-0
	DECQ CX
	JEQ done
	ADDQ $512, 8(R12)
	ADDQ $512, 16(R12)
	ADDQ $1024, 24(R12)
	MOVQ R9, R8
	MOVQ (R8), AX
	JMP AX

done:
	VZEROUPPER
	RET

#define OPERAND \
	MOVQ 16(R8), SI; \
	MOVQ (R12)(SI*8), SI; \
	ADDQ 8(R8), SI

#define NEXT \
	ADDQ $32, R8; \
	MOVQ (R8), AX; \
	JMP AX

#define EACH(F) \
	F(0, Z0, Z8, K1); \
	F(64, Z1, Z9, K2); \
	F(128, Z2, Z10, K3); \
	F(192, Z3, Z11, K4); \
	F(256, Z4, Z12, K5); \
	F(320, Z5, Z13, K6); \
	F(384, Z6, Z14, K7); \
	F(448, Z7, Z15, K1)

// An instruction with an array for operand.
#define ARRAY(name, F) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	OPERAND; \
	EACH(F); \
	NEXT

// An instruction with a number for operand, in Z19.
#define NUMBER(name, F) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	OPERAND; \
	VBROADCASTSS (SI), Z19; \
	EACH(F); \
	NEXT

// An instruction with an array and, in the instruction's fourth word, a number.
#define BOTH(name, F) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	OPERAND; \
	VBROADCASTSS 24(R8), Z19; \
	EACH(F); \
	NEXT

#define LOAD(o, A, B, K) VMOVUPS o(SI), A
#define STORE(o, A, B, K) VMOVUPS A, o(SI)
#define ADD(o, A, B, K) VADDPS o(SI), A, A
#define SUB(o, A, B, K) VSUBPS o(SI), A, A
#define RSUB(o, A, B, K) VMOVUPS o(SI), B; VSUBPS A, B, A
#define MUL(o, A, B, K) VMULPS o(SI), A, A
#define DIV(o, A, B, K) VDIVPS o(SI), A, A
#define RDIV(o, A, B, K) VMOVUPS o(SI), B; VDIVPS A, B, A
// The greater (5) or less (4) of two, +0 being greater than −0. The instruction
// leaves out a NaN, which is put back.
#define MAX(o, A, B, K) VCMPPS $3, o(SI), A, K; VRANGEPS $5, o(SI), A, A; VMOVAPS Z20, K, A
#define MIN(o, A, B, K) VCMPPS $3, o(SI), A, K; VRANGEPS $4, o(SI), A, A; VMOVAPS Z20, K, A
#define GT(o, A, B, K) VCMPPS $0x1e, o(SI), A, K; VMOVAPS.Z Z17, K, A
#define LT(o, A, B, K) VCMPPS $0x11, o(SI), A, K; VMOVAPS.Z Z17, K, A
#define EQ(o, A, B, K) VCMPPS $0, o(SI), A, K; VMOVAPS.Z Z17, K, A

ARRAY(tileLoad, LOAD)
ARRAY(tileStore, STORE)
ARRAY(tileAdd, ADD)
ARRAY(tileSub, SUB)
ARRAY(tileRsub, RSUB)
ARRAY(tileMul, MUL)
ARRAY(tileDiv, DIV)
ARRAY(tileRdiv, RDIV)
ARRAY(tileMax, MAX)
ARRAY(tileMin, MIN)
ARRAY(tileGt, GT)
ARRAY(tileLt, LT)
ARRAY(tileEq, EQ)

#define LOADS(o, A, B, K) VMOVAPS Z19, A
#define ADDS(o, A, B, K) VADDPS Z19, A, A
#define SUBS(o, A, B, K) VSUBPS Z19, A, A
#define RSUBS(o, A, B, K) VSUBPS A, Z19, A
#define MULS(o, A, B, K) VMULPS Z19, A, A
#define DIVS(o, A, B, K) VDIVPS Z19, A, A
#define RDIVS(o, A, B, K) VDIVPS A, Z19, A
#define MAXS(o, A, B, K) VCMPPS $3, Z19, A, K; VRANGEPS $5, Z19, A, A; VMOVAPS Z20, K, A
#define MINS(o, A, B, K) VCMPPS $3, Z19, A, K; VRANGEPS $4, Z19, A, A; VMOVAPS Z20, K, A
#define GTS(o, A, B, K) VCMPPS $0x1e, Z19, A, K; VMOVAPS.Z Z17, K, A
#define LTS(o, A, B, K) VCMPPS $0x11, Z19, A, K; VMOVAPS.Z Z17, K, A
#define EQS(o, A, B, K) VCMPPS $0, Z19, A, K; VMOVAPS.Z Z17, K, A

NUMBER(tileLoadS, LOADS)
NUMBER(tileAddS, ADDS)
NUMBER(tileSubS, SUBS)
NUMBER(tileRsubS, RSUBS)
NUMBER(tileMulS, MULS)
NUMBER(tileDivS, DIVS)
NUMBER(tileRdivS, RDIVS)
NUMBER(tileMaxS, MAXS)
NUMBER(tileMinS, MINS)
NUMBER(tileGtS, GTS)
NUMBER(tileLtS, LTS)
NUMBER(tileEqS, EQS)

// Functions of the accumulator, with a parameter in Z19.
#define LEAKY(o, A, B, K) VMULPS Z19, A, B; VCMPPS $0x1e, Z16, A, K; VBLENDMPS A, B, K, A
#define LEAKYSTEP(o, A, B, K) VCMPPS $0x1e, Z16, A, K; VBLENDMPS Z17, Z19, K, A
NUMBER(tileLeakyRelu, LEAKY)
NUMBER(tileLeakyStep, LEAKYSTEP)

#define PLAIN(name, F) \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0; \
	EACH(F); \
	NEXT

#define NEG(o, A, B, K) VPXORD Z18, A, A
#define ABS(o, A, B, K) VPANDND A, Z18, A
#define SQRT(o, A, B, K) VSQRTPS A, A
#define SQUARE(o, A, B, K) VMULPS A, A, A
PLAIN(tileNeg, NEG)
PLAIN(tileAbs, ABS)
PLAIN(tileSqrt, SQRT)
PLAIN(tileSquare, SQUARE)

// A · (x > 0 ? 1 : s): the derivative of a (leaky) rectifier.
#define SLOPE(o, A, B, K) VMULPS Z19, A, B; VCMPPS $0x11, o(SI), Z16, K; VBLENDMPS A, B, K, A
BOTH(tileSlope, SLOPE)

// Sums in float64: each number of the tile, or its square, is added to the
// number in its place at the operand.
#define EACHSUM(F) \
	F(0, Z0, Y0, Z8, Y9, Z9); \
	F(128, Z1, Y1, Z10, Y11, Z11); \
	F(256, Z2, Y2, Z12, Y13, Z13); \
	F(384, Z3, Y3, Z14, Y15, Z15); \
	F(512, Z4, Y4, Z8, Y9, Z9); \
	F(640, Z5, Y5, Z10, Y11, Z11); \
	F(768, Z6, Y6, Z12, Y13, Z13); \
	F(896, Z7, Y7, Z14, Y15, Z15)

#define SUM(o, A, AY, B, CY, C) \
	VCVTPS2PD AY, B; \
	VEXTRACTF64X4 $1, A, CY; \
	VCVTPS2PD CY, C; \
	VADDPD o(SI), B, B; \
	VADDPD o+64(SI), C, C; \
	VMOVUPD B, o(SI); \
	VMOVUPD C, o+64(SI)

#define SUMSQUARES(o, A, AY, B, CY, C) \
	VCVTPS2PD AY, B; \
	VEXTRACTF64X4 $1, A, CY; \
	VCVTPS2PD CY, C; \
	VFMADD213PD o(SI), B, B; \
	VFMADD213PD o+64(SI), C, C; \
	VMOVUPD B, o(SI); \
	VMOVUPD C, o+64(SI)

TEXT tileSum<>(SB), NOSPLIT|NOFRAME, $0-0
	OPERAND
	EACHSUM(SUM)
	NEXT

TEXT tileSquares<>(SB), NOSPLIT|NOFRAME, $0-0
	OPERAND
	EACHSUM(SUMSQUARES)
	NEXT

// The operand will be needed soon.
#define PREFETCH(o, A, B, K) PREFETCHT0 o(SI)
ARRAY(tilePrefetch, PREFETCH)

DATA ·tileHandlers+0(SB)/8, $tileNext<>(SB)
DATA ·tileHandlers+8(SB)/8, $tileLoad<>(SB)
DATA ·tileHandlers+16(SB)/8, $tileStore<>(SB)
DATA ·tileHandlers+24(SB)/8, $tileAdd<>(SB)
DATA ·tileHandlers+32(SB)/8, $tileSub<>(SB)
DATA ·tileHandlers+40(SB)/8, $tileRsub<>(SB)
DATA ·tileHandlers+48(SB)/8, $tileMul<>(SB)
DATA ·tileHandlers+56(SB)/8, $tileDiv<>(SB)
DATA ·tileHandlers+64(SB)/8, $tileRdiv<>(SB)
DATA ·tileHandlers+72(SB)/8, $tileMax<>(SB)
DATA ·tileHandlers+80(SB)/8, $tileMin<>(SB)
DATA ·tileHandlers+88(SB)/8, $tileGt<>(SB)
DATA ·tileHandlers+96(SB)/8, $tileLt<>(SB)
DATA ·tileHandlers+104(SB)/8, $tileEq<>(SB)
DATA ·tileHandlers+112(SB)/8, $tileLoadS<>(SB)
DATA ·tileHandlers+120(SB)/8, $tileAddS<>(SB)
DATA ·tileHandlers+128(SB)/8, $tileSubS<>(SB)
DATA ·tileHandlers+136(SB)/8, $tileRsubS<>(SB)
DATA ·tileHandlers+144(SB)/8, $tileMulS<>(SB)
DATA ·tileHandlers+152(SB)/8, $tileDivS<>(SB)
DATA ·tileHandlers+160(SB)/8, $tileRdivS<>(SB)
DATA ·tileHandlers+168(SB)/8, $tileMaxS<>(SB)
DATA ·tileHandlers+176(SB)/8, $tileMinS<>(SB)
DATA ·tileHandlers+184(SB)/8, $tileGtS<>(SB)
DATA ·tileHandlers+192(SB)/8, $tileLtS<>(SB)
DATA ·tileHandlers+200(SB)/8, $tileEqS<>(SB)
DATA ·tileHandlers+208(SB)/8, $tileLeakyRelu<>(SB)
DATA ·tileHandlers+216(SB)/8, $tileLeakyStep<>(SB)
DATA ·tileHandlers+224(SB)/8, $tileNeg<>(SB)
DATA ·tileHandlers+232(SB)/8, $tileAbs<>(SB)
DATA ·tileHandlers+240(SB)/8, $tileSqrt<>(SB)
DATA ·tileHandlers+248(SB)/8, $tileSquare<>(SB)
DATA ·tileHandlers+256(SB)/8, $tileSlope<>(SB)
DATA ·tileHandlers+264(SB)/8, $tileSum<>(SB)
DATA ·tileHandlers+272(SB)/8, $tileSquares<>(SB)
DATA ·tileHandlers+280(SB)/8, $tilePrefetch<>(SB)
GLOBL ·tileHandlers(SB), RODATA|NOPTR, $288
