//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// USE goes on in the function of the set in use, which finds its arguments where they
// are. A table of functions in Go would be shorter, but Go takes what is given to such a
// function for kept, and allocates it.
#define USE(inAVX512, inAVX2) \
	CMPB ·wide(SB), $const_avx512 \
	JNE  2(PC) \
	JMP  inAVX512(SB) \
	JMP  inAVX2(SB)

// func blocks8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·blocks8(SB), NOSPLIT, $0-32
	USE(·blocks8AVX512, ·blocks8AVX2)

// func samples8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·samples8(SB), NOSPLIT, $0-32
	USE(·samples8AVX512, ·samples8AVX2)

// func boxMuller8(z0, z1 *[8]float64, w0, w1 *[8]uint64)
TEXT ·boxMuller8(SB), NOSPLIT, $0-32
	USE(·boxMuller8AVX512, ·boxMuller8AVX2)

// func uniforms(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·uniforms(SB), NOSPLIT, $0-40
	USE(·uniformsAVX512, ·uniformsAVX2)

// func normals(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·normals(SB), NOSPLIT, $0-40
	USE(·normalsAVX512, ·normalsAVX2)
