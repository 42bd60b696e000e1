//go:build !noasm

#include "go_asm.h"
#include "textflag.h"
#include "thread_amd64.h"
#include "exp_avx512_amd64.h"

// The machine in AVX-512. A strip of 128 numbers, the accumulator, stays in
// Z0 … Z7. Each handler does one instruction on it and jumps to the next one's.
//
// R8 is the instruction (linked), R9 the first one, R12 the counters, CX the
// strips that are left. Z8 … Z15 and Z21 … Z31 are the handlers' own; Z16 = 0, Z17 =
// 1, Z18 = sign bits, Z20 = NaN.

// A handler and its place in the table, which grows in the order of this file.
#define HANDLER(name, op) \
DATA ·handlersAVX512+op*8(SB)/8, $name<>(SB); \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0

// func runAVX512(code *linked, counters *[4]uintptr, strips int)
TEXT ·runAVX512(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ code+0(FP), R9
	MOVQ counters+8(FP), R12
	MOVQ strips+16(FP), CX
	VPXORD Z16, Z16, Z16
	VPTERNLOGD $255, Z17, Z17, Z17
	VMOVAPS Z17, Z20
	VPSLLD $31, Z17, Z18
	VPSLLD $25, Z17, Z17
	VPSRLD $2, Z17, Z17
	FIRST

HANDLER(next, const_opNext)
	DECQ CX
	JEQ done
	ADDQ $(const_Width*4), (const_InBlock*8)(R12)
	ADDQ $(const_Width*4), (const_InArray*8)(R12)
	ADDQ $(const_Width*8), (const_InSums*8)(R12)
	FIRST

done:
	VZEROUPPER
	RET

// What an instruction does to a register of the accumulator A, with operand S, a
// register B of its own and a mask K.
#define EACH(F, S0, S1, S2, S3, S4, S5, S6, S7) \
	F(S0, Z0, Z8, K1); \
	F(S1, Z1, Z9, K2); \
	F(S2, Z2, Z10, K3); \
	F(S3, Z3, Z11, K4); \
	F(S4, Z4, Z12, K5); \
	F(S5, Z5, Z13, K6); \
	F(S6, Z6, Z14, K7); \
	F(S7, Z7, Z15, K1)

#define EACHOF(F) EACH(F, 0(SI), 64(SI), 128(SI), 192(SI), 256(SI), 320(SI), 384(SI), 448(SI))
#define EACHBY(F) EACH(F, Z19, Z19, Z19, Z19, Z19, Z19, Z19, Z19)

// An instruction with an array for operand.
#define ARRAY(name, op, F) \
HANDLER(name, op); \
	OPERAND; \
	EACHOF(F); \
	NEXT

// An instruction with a number for operand, in Z19.
#define NUMBER(name, op, F) \
HANDLER(name, op); \
	OPERAND; \
	VBROADCASTSS (SI), Z19; \
	EACHBY(F); \
	NEXT

// An instruction with either.
#define EITHER(array, number, op, F) \
ARRAY(array, op, F); \
NUMBER(number, (op+1), F)

#define STORE(S, A, B, K) VMOVUPS A, S
ARRAY(store, const_opStore, STORE)

HANDLER(prefetch, const_opPrefetch)
#define PREFETCH(S, A, B, K) PREFETCHT0 S
	OPERAND
	MOVL linked_ahead(R8), AX
	ADDQ AX, SI
	EACHOF(PREFETCH)
	NEXT

#define LOAD(S, A, B, K) VMOVUPS S, A
#define ADD(S, A, B, K) VADDPS S, A, A
#define SUB(S, A, B, K) VSUBPS S, A, A
#define RSUB(S, A, B, K) VMOVUPS S, B; VSUBPS A, B, A
#define MUL(S, A, B, K) VMULPS S, A, A
#define DIV(S, A, B, K) VDIVPS S, A, A
#define RDIV(S, A, B, K) VMOVUPS S, B; VDIVPS A, B, A
// The greater (5) or less (4) of two, +0 being greater than −0. The instruction
// leaves out a NaN, which is put back.
#define MAX(S, A, B, K) VCMPPS $3, S, A, K; VRANGEPS $5, S, A, A; VMOVAPS Z20, K, A
#define MIN(S, A, B, K) VCMPPS $3, S, A, K; VRANGEPS $4, S, A, A; VMOVAPS Z20, K, A
#define GREATER(S, A, B, K) VCMPPS $0x1e, S, A, K; VMOVAPS.Z Z17, K, A
#define LESS(S, A, B, K) VCMPPS $0x11, S, A, K; VMOVAPS.Z Z17, K, A
#define EQUAL(S, A, B, K) VCMPPS $0, S, A, K; VMOVAPS.Z Z17, K, A
EITHER(load, loadNum, const_opLoad, LOAD)
EITHER(add, addNum, const_opAdd, ADD)
EITHER(sub, subNum, const_opSub, SUB)
EITHER(rsub, rsubNum, const_opRsub, RSUB)
EITHER(mul, mulNum, const_opMul, MUL)
EITHER(div, divNum, const_opDiv, DIV)
EITHER(rdiv, rdivNum, const_opRdiv, RDIV)
EITHER(max, maxNum, const_opMax, MAX)
EITHER(min, minNum, const_opMin, MIN)
EITHER(greater, greaterNum, const_opGreater, GREATER)
EITHER(less, lessNum, const_opLess, LESS)
EITHER(equal, equalNum, const_opEqual, EQUAL)

// Functions of the accumulator, with a parameter in Z19 or none.
#define LEAKYRELU(S, A, B, K) VMULPS S, A, B; VCMPPS $0x1e, Z16, A, K; VBLENDMPS A, B, K, A
#define LEAKYSTEP(S, A, B, K) VCMPPS $0x1e, Z16, A, K; VBLENDMPS Z17, S, K, A
#define NEG(S, A, B, K) VPXORD Z18, A, A
#define ABS(S, A, B, K) VPANDND A, Z18, A
#define SQRT(S, A, B, K) VSQRTPS A, A
#define SQUARE(S, A, B, K) VMULPS A, A, A
NUMBER(leakyRelu, const_opLeakyRelu, LEAKYRELU)
NUMBER(leakyStep, const_opLeakyStep, LEAKYSTEP)
NUMBER(neg, const_opNeg, NEG)
NUMBER(abs, const_opAbs, ABS)
NUMBER(sqrt, const_opSqrt, SQRT)
NUMBER(square, const_opSquare, SQUARE)

// A · (x > 0 ? 1 : num), the derivative of a (leaky) rectifier at the operand.
HANDLER(slope, const_opSlope)
#define SLOPE(S, A, B, K) VMULPS Z19, A, B; VCMPPS $0x11, S, Z16, K; VBLENDMPS A, B, K, A
	OPERAND
	VBROADCASTSS linked_num(R8), Z19
	EACHOF(SLOPE)
	NEXT

// Sums in float64: each number of the strip, or its square, is added to the
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

#define WIDEN(A, AY, B, CY, C) \
	VCVTPS2PD AY, B; \
	VEXTRACTF64X4 $1, A, CY; \
	VCVTPS2PD CY, C

#define KEEP(o, B, C) \
	VMOVUPD B, o(SI); \
	VMOVUPD C, o+64(SI)

#define SUM(o, A, AY, B, CY, C) \
	WIDEN(A, AY, B, CY, C); \
	VADDPD o(SI), B, B; \
	VADDPD o+64(SI), C, C; \
	KEEP(o, B, C)

#define SUMSQUARES(o, A, AY, B, CY, C) \
	WIDEN(A, AY, B, CY, C); \
	VFMADD213PD o(SI), B, B; \
	VFMADD213PD o+64(SI), C, C; \
	KEEP(o, B, C)

HANDLER(sum, const_opSum)
	OPERAND
	EACHSUM(SUM)
	NEXT

HANDLER(sumSquares, const_opSumSquares)
	OPERAND
	EACHSUM(SUMSQUARES)
	NEXT

// Functions of the accumulator that need more registers. The processor works on
// several of the eight at a time, in registers that it renames.
#define FUNCTION(name, op, CONSTANTS, F) \
HANDLER(name, op); \
	CONSTANTS; \
	F(Z0); \
	F(Z1); \
	F(Z2); \
	F(Z3); \
	F(Z4); \
	F(Z5); \
	F(Z6); \
	F(Z7); \
	NEXT

#define PARAMETER \
	OPERAND; \
	VBROADCASTSS (SI), Z19

#define ELUCONSTANTS PARAMETER; EXPM1CONSTANTS
#define ELUDCONSTANTS PARAMETER; EXPCONSTANTS
#define SOFTPLUSCONSTANTS EXPCONSTANTS; VBROADCASTSS ·expf+48(SB), Z15
FUNCTION(exp, const_opExp, EXPCONSTANTS, EXPONENTIAL)
FUNCTION(elu, const_opElu, ELUCONSTANTS, ELU)
FUNCTION(eluD, const_opEluD, ELUDCONSTANTS, ELUD)
FUNCTION(eluDD, const_opEluDD, ELUDCONSTANTS, ELUDD)
FUNCTION(sigmoid, const_opSigmoid, EXPCONSTANTS, SIGMOID)
FUNCTION(tanh, const_opTanh, EXPM1CONSTANTS, TANH)
FUNCTION(softplus, const_opSoftplus, SOFTPLUSCONSTANTS, SOFTPLUS)
FUNCTION(log, const_opLog, LOGCONSTANTS, LOG)

GLOBL ·handlersAVX512(SB), RODATA|NOPTR, $(const_numOpcodes*8)
