//go:build !noasm

#include "textflag.h"

// Sums of float32 in float64. The macros take how many vectors there are, and
// F(x, a, A, X): x and a are where a vector lies in x and in acc, A is its sum, X
// what is added.

#define ONE(F) F(0, 0, Y0, Y4)
#define FOUR(F) ONE(F); F(16, 32, Y1, Y5); F(32, 64, Y2, Y6); F(48, 96, Y3, Y7)
#define FOURWIDE(F) F(0, 0, Z0, Z8); F(32, 64, Z1, Z9); F(64, 128, Z2, Z10); F(96, 192, Z3, Z11)
#define EIGHTWIDE(F) FOURWIDE(F); F(128, 256, Z4, Z12); F(160, 320, Z5, Z13); F(192, 384, Z6, Z14); F(224, 448, Z7, Z15)

#define GET(x, a, A, X) VMOVUPD a(DI), A
#define PUT(x, a, A, X) VMOVUPD A, a(DI)
#define ZERO(x, a, A, X) VXORPD A, A, A
#define ZEROWIDE(x, a, A, X) VPXORQ A, A, A
#define WIDEN(x, a, A, X) VCVTPS2PD x(SI), X
#define ADD(x, a, A, X) VADDPD X, A, A
#define ADDSQUARE(x, a, A, X) VFMADD231PD X, X, A
#define ADDTO(x, a, A, X) VADDPD a(DI), X, X; VMOVUPD X, a(DI)

// func name(acc *float64, x *float32, rows, stride int)
// acc[c] += Σ x[r·stride + c] for the columns of so many vectors; rows is not 0.
#define COLUMNS(name, VECTORS, ADD) \
TEXT name(SB), NOSPLIT, $0-32; \
	MOVQ acc+0(FP), DI; \
	MOVQ x+8(FP), SI; \
	MOVQ rows+16(FP), CX; \
	MOVQ stride+24(FP), DX; \
	SHLQ $2, DX; \
	VECTORS(GET); \
loop: \
	VECTORS(WIDEN); \
	VECTORS(ADD); \
	ADDQ DX, SI; \
	DECQ CX; \
	JNZ  loop; \
	VECTORS(PUT); \
	VZEROUPPER; \
	RET

COLUMNS(·sumColumns4, ONE, ADD)
COLUMNS(·sumColumns16, FOUR, ADD)
COLUMNS(·sumColumns32, FOURWIDE, ADD)
COLUMNS(·sumColumns64, EIGHTWIDE, ADD)
COLUMNS(·sumSquareColumns32, FOURWIDE, ADDSQUARE)
COLUMNS(·sumSquareColumns64, EIGHTWIDE, ADDSQUARE)

// func name(x *float32, n int) float64
// As many chains of sums as vectors have numbers, which FOLD adds to Y0; n is a
// multiple of them and not 0.
#define ALL(name, VECTORS, ZERO, numbers, FOLD) \
TEXT name(SB), NOSPLIT, $0-24; \
	MOVQ x+0(FP), SI; \
	MOVQ n+8(FP), CX; \
	VECTORS(ZERO); \
loop: \
	VECTORS(WIDEN); \
	VECTORS(ADD); \
	ADDQ $(4*numbers), SI; \
	SUBQ $numbers, CX; \
	JNZ  loop; \
	FOLD; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPD X1, X0, X0; \
	VHADDPD X0, X0, X0; \
	VZEROUPPER; \
	MOVSD X0, ret+16(FP); \
	RET

#define FOLD4 \
	VADDPD Y1, Y0, Y0; \
	VADDPD Y3, Y2, Y2; \
	VADDPD Y2, Y0, Y0

#define FOLD8 \
	VADDPD Z1, Z0, Z0; \
	VADDPD Z3, Z2, Z2; \
	VADDPD Z5, Z4, Z4; \
	VADDPD Z7, Z6, Z6; \
	VADDPD Z2, Z0, Z0; \
	VADDPD Z6, Z4, Z4; \
	VADDPD Z4, Z0, Z0; \
	VEXTRACTF64X4 $1, Z0, Y1; \
	VADDPD Y1, Y0, Y0

ALL(·sum16, FOUR, ZERO, 16, FOLD4)
ALL(·sum64, EIGHTWIDE, ZEROWIDE, 64, FOLD8)

// func addRow32(acc *float64, x *float32, n int)
// acc[c] += x[c], c < n, a multiple of 32 and not 0.
TEXT ·addRow32(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX

loop:
	FOURWIDE(WIDEN)
	FOURWIDE(ADDTO)
	ADDQ $128, SI
	ADDQ $256, DI
	SUBQ $32, CX
	JNZ loop
	VZEROUPPER
	RET
