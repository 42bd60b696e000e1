//go:build !noasm

#include "textflag.h"
#include "go_asm.h"
#include "walk_amd64.h"
#include "maps5_amd64.h"
#include "maps6_amd64.h"

// The transforms on AVX-512: a vector is one register, and so is a constant.

#define V0 Z0
#define V1 Z1
#define V2 Z2
#define V3 Z3
#define V4 Z4
#define V5 Z5
#define V6 Z6
#define V7 Z7
#define V8 Z8
#define V9 Z9
#define V10 Z10
#define V11 Z11

#define C0 Z24
#define C1 Z25
#define C2 Z26
#define C3 Z27
#define C4 Z28
#define C5 Z29
#define C6 Z30

#define MAP(body) \
	BEGIN \
	VBROADCASTSS 0(R9), C0 \
	VBROADCASTSS 32(R9), C1 \
	VBROADCASTSS 64(R9), C2 \
	VBROADCASTSS 96(R9), C3 \
	VBROADCASTSS 128(R9), C4 \
	VBROADCASTSS 160(R9), C5 \
	VBROADCASTSS 192(R9), C6 \
block: \
	BLOCK \
column: \
	body(0) \
	END

// func input6AVX512(p *pass)
TEXT ·input6AVX512(SB), NOSPLIT, $0-8
	MAP(INPUT6)

// func output6AVX512(p *pass)
TEXT ·output6AVX512(SB), NOSPLIT, $0-8
	MAP(OUTPUT6)

// func spread6AVX512(p *pass)
TEXT ·spread6AVX512(SB), NOSPLIT, $0-8
	MAP(SPREAD6)

// func filter6AVX512(p *pass)
TEXT ·filter6AVX512(SB), NOSPLIT, $0-8
	MAP(FILTER6)

// func gather6AVX512(p *pass)
TEXT ·gather6AVX512(SB), NOSPLIT, $0-8
	MAP(GATHER6)

// func input5AVX512(p *pass)
TEXT ·input5AVX512(SB), NOSPLIT, $0-8
	MAP(INPUT5)

// func output5AVX512(p *pass)
TEXT ·output5AVX512(SB), NOSPLIT, $0-8
	MAP(OUTPUT5)

// func spread5AVX512(p *pass)
TEXT ·spread5AVX512(SB), NOSPLIT, $0-8
	MAP(SPREAD5)

// func filter5AVX512(p *pass)
TEXT ·filter5AVX512(SB), NOSPLIT, $0-8
	MAP(FILTER5)

// func gather5AVX512(p *pass)
TEXT ·gather5AVX512(SB), NOSPLIT, $0-8
	MAP(GATHER5)
