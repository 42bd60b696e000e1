//go:build !noasm

#include "go_asm.h"
#include "textflag.h"
#include "thread_amd64.h"
#include "exp_avx2_amd64.h"
#include "log_avx2_amd64.h"

// The machine in AVX2 and FMA. Half a strip, 64 numbers, stays in Y0 … Y7, the
// accumulator; the code is run for one half and then for the other. Each handler
// does one instruction on the accumulator and jumps to the next one's.
//
// R8 is the instruction (linked), R9 the first one, R12 the counters, CX the half
// strips that are left. Y8 … Y15 are the handlers' own.

// A handler and its place in the table, which grows in the order of this file.
#define HANDLER(name, op) \
DATA ·handlersAVX2+op*8(SB)/8, $name<>(SB); \
TEXT name<>(SB), NOSPLIT|NOFRAME, $0-0

// func runAVX2(code *linked, counters *[4]uintptr, strips int)
TEXT ·runAVX2(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ code+0(FP), R9
	MOVQ counters+8(FP), R12
	MOVQ strips+16(FP), CX
	ADDQ CX, CX
	FIRST

HANDLER(next, const_opNext)
	DECQ CX
	JEQ done
	ADDQ $(const_Width*2), (const_InBlock*8)(R12)
	ADDQ $(const_Width*2), (const_InArray*8)(R12)
	ADDQ $(const_Width*4), (const_InSums*8)(R12)
	FIRST

done:
	VZEROUPPER
	RET

// What an instruction does to a register of the accumulator A, with operand S. The
// processor renames Y8 … Y10, so that it works on several of the eight at a time.
#define EACH(F, S0, S1, S2, S3, S4, S5, S6, S7) \
	F(S0, Y0); \
	F(S1, Y1); \
	F(S2, Y2); \
	F(S3, Y3); \
	F(S4, Y4); \
	F(S5, Y5); \
	F(S6, Y6); \
	F(S7, Y7)

#define EACHOF(F) EACH(F, 0(SI), 32(SI), 64(SI), 96(SI), 128(SI), 160(SI), 192(SI), 224(SI))
#define EACHBY(F) EACH(F, Y15, Y15, Y15, Y15, Y15, Y15, Y15, Y15)

// Constants, of which an instruction makes those that it needs.
#define NONE
#define ZERO VXORPS Y11, Y11, Y11
#define ONE VPCMPEQD Y12, Y12, Y12; VPSLLD $25, Y12, Y12; VPSRLD $2, Y12, Y12
#define SIGN VPCMPEQD Y13, Y13, Y13; VPSLLD $31, Y13, Y13
#define ZEROONE ZERO; ONE

// An instruction with an array for operand.
#define ARRAY(name, op, CONSTANTS, F) \
HANDLER(name, op); \
	OPERAND; \
	CONSTANTS; \
	EACHOF(F); \
	NEXT

// An instruction with a number for operand, in Y15.
#define NUMBER(name, op, CONSTANTS, F) \
HANDLER(name, op); \
	OPERAND; \
	VBROADCASTSS (SI), Y15; \
	CONSTANTS; \
	EACHBY(F); \
	NEXT

// An instruction with either.
#define EITHER(array, number, op, CONSTANTS, F) \
ARRAY(array, op, CONSTANTS, F); \
NUMBER(number, (op+1), CONSTANTS, F)

#define STORE(S, A) VMOVUPS A, S
ARRAY(store, const_opStore, NONE, STORE)

HANDLER(prefetch, const_opPrefetch)
	OPERAND
	MOVL linked_ahead(R8), AX
	ADDQ AX, SI
	PREFETCHT0 0(SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	PREFETCHT0 192(SI)
	NEXT

#define LOAD(S, A) VMOVUPS S, A
#define ADD(S, A) VADDPS S, A, A
#define SUB(S, A) VSUBPS S, A, A
#define RSUB(S, A) VMOVUPS S, Y8; VSUBPS A, Y8, A
#define MUL(S, A) VMULPS S, A, A
#define DIV(S, A) VDIVPS S, A, A
#define RDIV(S, A) VMOVUPS S, Y8; VDIVPS A, Y8, A
// The instructions give the first operand, as written here, if both are zeros or either
// is NaN. So zeros are combined in both orders: the bits of others are equal. All bits
// set is a NaN.
#define MAX(S, A) VMOVUPS S, Y8; VMAXPS Y8, A, Y9; VMAXPS A, Y8, Y10; VANDPS Y10, Y9, Y9; VCMPPS $3, Y8, A, Y10; VORPS Y10, Y9, A
#define MIN(S, A) VMOVUPS S, Y8; VMINPS Y8, A, Y9; VMINPS A, Y8, Y10; VORPS Y10, Y9, Y9; VCMPPS $3, Y8, A, Y10; VORPS Y10, Y9, A
#define GREATER(S, A) VCMPPS $0x1e, S, A, A; VANDPS Y12, A, A
#define LESS(S, A) VCMPPS $0x11, S, A, A; VANDPS Y12, A, A
#define EQUAL(S, A) VCMPPS $0, S, A, A; VANDPS Y12, A, A
EITHER(load, loadNum, const_opLoad, NONE, LOAD)
EITHER(add, addNum, const_opAdd, NONE, ADD)
EITHER(sub, subNum, const_opSub, NONE, SUB)
EITHER(rsub, rsubNum, const_opRsub, NONE, RSUB)
EITHER(mul, mulNum, const_opMul, NONE, MUL)
EITHER(div, divNum, const_opDiv, NONE, DIV)
EITHER(rdiv, rdivNum, const_opRdiv, NONE, RDIV)
EITHER(max, maxNum, const_opMax, NONE, MAX)
EITHER(min, minNum, const_opMin, NONE, MIN)
EITHER(greater, greaterNum, const_opGreater, ONE, GREATER)
EITHER(less, lessNum, const_opLess, ONE, LESS)
EITHER(equal, equalNum, const_opEqual, ONE, EQUAL)

// Functions of the accumulator, with a parameter in Y15 or none.
#define LEAKYRELU(S, A) VMULPS S, A, Y8; VCMPPS $0x1e, Y11, A, Y9; VBLENDVPS Y9, A, Y8, A
#define LEAKYSTEP(S, A) VCMPPS $0x1e, Y11, A, Y9; VBLENDVPS Y9, Y12, S, A
#define NEG(S, A) VXORPS Y13, A, A
#define ABS(S, A) VANDNPS A, Y13, A
#define SQRT(S, A) VSQRTPS A, A
#define SQUARE(S, A) VMULPS A, A, A
NUMBER(leakyRelu, const_opLeakyRelu, ZERO, LEAKYRELU)
NUMBER(leakyStep, const_opLeakyStep, ZEROONE, LEAKYSTEP)
NUMBER(neg, const_opNeg, SIGN, NEG)
NUMBER(abs, const_opAbs, SIGN, ABS)
NUMBER(sqrt, const_opSqrt, NONE, SQRT)
NUMBER(square, const_opSquare, NONE, SQUARE)

// A · (x > 0 ? 1 : num), the derivative of a (leaky) rectifier at the operand.
#define SLOPE(S, A) VMULPS Y15, A, Y8; VCMPPS $0x11, S, Y11, Y9; VBLENDVPS Y9, A, Y8, A
HANDLER(slope, const_opSlope)
	OPERAND
	VBROADCASTSS linked_num(R8), Y15
	ZERO
	EACHOF(SLOPE)
	NEXT

// Sums in float64: each number of the half strip, or its square, is added to the
// number in its place at the operand.
#define EACHSUM(F) \
	F(0, Y0, X0); \
	F(64, Y1, X1); \
	F(128, Y2, X2); \
	F(192, Y3, X3); \
	F(256, Y4, X4); \
	F(320, Y5, X5); \
	F(384, Y6, X6); \
	F(448, Y7, X7)

#define WIDEN(A, AX) \
	VCVTPS2PD AX, Y8; \
	VEXTRACTF128 $1, A, X9; \
	VCVTPS2PD X9, Y9

#define KEEP(o) \
	VMOVUPD Y8, o(SI); \
	VMOVUPD Y9, o+32(SI)

#define SUM(o, A, AX) \
	WIDEN(A, AX); \
	VADDPD o(SI), Y8, Y8; \
	VADDPD o+32(SI), Y9, Y9; \
	KEEP(o)

#define SUMSQUARES(o, A, AX) \
	WIDEN(A, AX); \
	VFMADD213PD o(SI), Y8, Y8; \
	VFMADD213PD o+32(SI), Y9, Y9; \
	KEEP(o)

HANDLER(sum, const_opSum)
	OPERAND
	EACHSUM(SUM)
	NEXT

HANDLER(sumSquares, const_opSumSquares)
	OPERAND
	EACHSUM(SUMSQUARES)
	NEXT

// Functions of the accumulator that need more registers.
#define FUNCTION(name, op, F) \
HANDLER(name, op); \
	OPERAND; \
	VBROADCASTSS (SI), Y15; \
	F(Y0); \
	F(Y1); \
	F(Y2); \
	F(Y3); \
	F(Y4); \
	F(Y5); \
	F(Y6); \
	F(Y7); \
	NEXT

FUNCTION(exp, const_opExp, EXPONENTIAL)
FUNCTION(elu, const_opElu, ELU)
FUNCTION(eluD, const_opEluD, ELUD)
FUNCTION(eluDD, const_opEluDD, ELUDD)
FUNCTION(sigmoid, const_opSigmoid, SIGMOID)
FUNCTION(tanh, const_opTanh, TANH)
FUNCTION(softplus, const_opSoftplus, SOFTPLUS)
FUNCTION(log, const_opLog, LOG)

GLOBL ·handlersAVX2(SB), RODATA|NOPTR, $(const_numOpcodes*8)
