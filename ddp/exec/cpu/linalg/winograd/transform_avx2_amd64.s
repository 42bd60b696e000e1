//go:build !noasm

#include "textflag.h"
#include "go_asm.h"
#include "walk_amd64.h"
#include "maps5_amd64.h"
#include "maps6_amd64.h"

// The transforms on AVX2: a vector is two registers, worked on one after the
// other. Four constants are in the registers that are left, the others in
// memory.

#define V0 Y0
#define V1 Y1
#define V2 Y2
#define V3 Y3
#define V4 Y4
#define V5 Y5
#define V6 Y6
#define V7 Y7
#define V8 Y8
#define V9 Y9
#define V10 Y10
#define V11 Y11

#define C0 Y12
#define C1 Y13
#define C2 Y14
#define C3 Y15
#define C4 128(R9)
#define C5 160(R9)
#define C6 192(R9)

#define MAP(body) \
	BEGIN \
	VMOVUPS 0(R9), C0 \
	VMOVUPS 32(R9), C1 \
	VMOVUPS 64(R9), C2 \
	VMOVUPS 96(R9), C3 \
block: \
	BLOCK \
column: \
	body(0) \
	body(32) \
	END

// func input6AVX2(p *pass)
TEXT ·input6AVX2(SB), NOSPLIT, $0-8
	MAP(INPUT6)

// func output6AVX2(p *pass)
TEXT ·output6AVX2(SB), NOSPLIT, $0-8
	MAP(OUTPUT6)

// func spread6AVX2(p *pass)
TEXT ·spread6AVX2(SB), NOSPLIT, $0-8
	MAP(SPREAD6)

// func filter6AVX2(p *pass)
TEXT ·filter6AVX2(SB), NOSPLIT, $0-8
	MAP(FILTER6)

// func gather6AVX2(p *pass)
TEXT ·gather6AVX2(SB), NOSPLIT, $0-8
	MAP(GATHER6)

// func input5AVX2(p *pass)
TEXT ·input5AVX2(SB), NOSPLIT, $0-8
	MAP(INPUT5)

// func output5AVX2(p *pass)
TEXT ·output5AVX2(SB), NOSPLIT, $0-8
	MAP(OUTPUT5)

// func spread5AVX2(p *pass)
TEXT ·spread5AVX2(SB), NOSPLIT, $0-8
	MAP(SPREAD5)

// func filter5AVX2(p *pass)
TEXT ·filter5AVX2(SB), NOSPLIT, $0-8
	MAP(FILTER5)

// func gather5AVX2(p *pass)
TEXT ·gather5AVX2(SB), NOSPLIT, $0-8
	MAP(GATHER5)
