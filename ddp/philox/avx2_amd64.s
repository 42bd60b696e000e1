//go:build !noasm

#include "textflag.h"
#include "shared_amd64.h"

// Eight blocks are two groups of four, one in Y0 and above, the other in later registers.
// Their parts alternate, for within a group most instructions wait for the one before.
// Nothing is fused: all roundings are those of BoxMuller.

// Multipliers of the rounds, what is added to the key after each, and the lower half
// of 64 bits.
CONSTANT(multiply0, $0xD2511F53)
CONSTANT(multiply1, $0xCD9E8D57)
CONSTANT(add0, $0x9E3779B9)
CONSTANT(add1, $0xBB67AE85)
CONSTANT(lower, $0xFFFFFFFF)

// ROUND is one round on the words a0 … a3 of four blocks under the key (Y12, Y13).
// Afterwards the words are in a0, x, a2 and y, which saves moves. Words and keys are
// the lower halves of 64 bits; what is in the upper halves has no influence.
#define ROUND(a0, a1, a2, a3, x, y) \
	VPMULUDQ Y14, a0, y \
	VPMULUDQ Y15, a2, x \
	VPXOR    Y12, a1, a1 \
	VPXOR    Y13, a3, a3 \
	VPSRLQ   $32, x, a0 \
	VPSRLQ   $32, y, a2 \
	VPXOR    a1, a0, a0 \
	VPXOR    a3, a2, a2

#define NEXTKEY \
	VPADDQ add0<>(SB), Y12, Y12 \
	VPADDQ add1<>(SB), Y13, Y13

// TWOROUNDS is two rounds on Y0 … Y3 and on Y4 … Y7, where the words are again
// afterwards.
#define TWOROUNDS \
	ROUND(Y0, Y1, Y2, Y3, Y8, Y9) \
	ROUND(Y4, Y5, Y6, Y7, Y10, Y11) \
	NEXTKEY \
	ROUND(Y0, Y8, Y2, Y9, Y1, Y3) \
	ROUND(Y4, Y10, Y6, Y11, Y5, Y7)

// ROUNDS is ten rounds.
#define ROUNDS \
	VMOVDQU multiply0<>(SB), Y14 \
	VMOVDQU multiply1<>(SB), Y15 \
	TWOROUNDS \
	NEXTKEY \
	TWOROUNDS \
	NEXTKEY \
	TWOROUNDS \
	NEXTKEY \
	TWOROUNDS \
	NEXTKEY \
	TWOROUNDS

// COUNTER loads the counter, equal in all lanes, into Y0 … Y3 and Y4 … Y7, and the
// key into Y12 and Y13.
#define COUNTER(i, sample, step, tag, seed) \
	VBROADCASTSS i, Y0 \
	VBROADCASTSS sample, Y1 \
	VBROADCASTSS step, Y2 \
	VBROADCASTSS tag, Y3 \
	VPBROADCASTQ seed, Y12 \
	VPSRLQ  $32, Y12, Y13 \
	VMOVDQA Y0, Y4 \
	VMOVDQA Y1, Y5 \
	VMOVDQA Y2, Y6 \
	VMOVDQA Y3, Y7

// APART makes a word of the counter, in a and b, that of eight blocks in succession.
#define APART(a, b) \
	VPADDD lane<>+0(SB), a, a \
	VPADDD lane<>+32(SB), b, b

// NEXTBLOCKS is the next eight blocks of uniforms and normals, with anything in the upper
// halves.
#define NEXTBLOCKS \
	COUNTER(i+16(FP), sample+20(FP), step+24(FP), tag+28(FP), seed+32(FP)) \
	APART(Y0, Y4) \
	ROUNDS \
	ADDL $8, i+16(FP)

// KEEP writes the words of eight blocks: word 0 of all, then word 1 of all, and so on.
#define KEEP(to) \
	VMOVDQU Y0, 0(to) \
	VMOVDQU Y4, 32(to) \
	VMOVDQU Y1, 64(to) \
	VMOVDQU Y5, 96(to) \
	VMOVDQU Y2, 128(to) \
	VMOVDQU Y6, 160(to) \
	VMOVDQU Y3, 192(to) \
	VMOVDQU Y7, 224(to)

// CLEAR clears the upper halves of the words.
#define CLEAR \
	VMOVDQU lower<>(SB), Y8 \
	VPAND Y8, Y0, Y0 \
	VPAND Y8, Y1, Y1 \
	VPAND Y8, Y2, Y2 \
	VPAND Y8, Y3, Y3 \
	VPAND Y8, Y4, Y4 \
	VPAND Y8, Y5, Y5 \
	VPAND Y8, Y6, Y6 \
	VPAND Y8, Y7, Y7

// func blocks8AVX2(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·blocks8AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	COUNTER(i+8(FP), sample+12(FP), step+16(FP), tag+20(FP), seed+24(FP))
	APART(Y0, Y4)
	ROUNDS
	CLEAR
	KEEP(DI)
	VZEROUPPER
	RET

// func samples8AVX2(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·samples8AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	COUNTER(i+8(FP), sample+12(FP), step+16(FP), tag+20(FP), seed+24(FP))
	APART(Y1, Y5)
	ROUNDS
	CLEAR
	KEEP(DI)
	VZEROUPPER
	RET

// Constants of UNIT32: eight times 1, and eight times 2⁻²⁵ as a float32.
CONSTANT(odd32, $0x0000000100000001)
CONSTANT(tiny32, $0x3300000033000000)

// UNIT32 turns the eight words w into what Float64 makes of them, rounded to float32:
// 2⌊u/2⁸⌋ + 1 is rounded to float32, and its product with 2⁻²⁵ is exact.
#define UNIT32(w) \
	VPSRLD $7, w, w \
	VPOR   odd32<>(SB), w, w \
	VCVTDQ2PS w, w \
	VMULPS tiny32<>(SB), w, w

// JOIN turns the words a0 … a3 of four blocks into uniforms: of blocks 0 and 2 in a1, of
// blocks 1 and 3 in a3.
#define JOIN(a0, a1, a2, a3) \
	VPSLLQ   $32, a1, a1 \
	VPSLLQ   $32, a3, a3 \
	VPBLENDD $0xAA, a1, a0, a0 \
	VPBLENDD $0xAA, a3, a2, a2 \
	VPUNPCKLQDQ a2, a0, a1 \
	VPUNPCKHQDQ a2, a0, a3 \
	UNIT32(a1) \
	UNIT32(a3)

// func uniformsAVX2(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·uniformsAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ groups+8(FP), CX

loop:
	NEXTBLOCKS
	JOIN(Y0, Y1, Y2, Y3)
	JOIN(Y4, Y5, Y6, Y7)
	VMOVUPS X1, 0(DI)
	VMOVUPS X3, 16(DI)
	VEXTRACTF128 $1, Y1, 32(DI)
	VEXTRACTF128 $1, Y3, 48(DI)
	VMOVUPS X5, 64(DI)
	VMOVUPS X7, 80(DI)
	VEXTRACTF128 $1, Y5, 96(DI)
	VEXTRACTF128 $1, Y7, 112(DI)
	ADDQ $128, DI
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET

// Constants of numbers that are made from their bits: 2²⁷ and 2²⁹ with the last bit
// set, and what is subtracted from such numbers; an eighth of a turn; what makes the
// bits of √½ those of 1; 2⁵² + 1023; the bits of a mantissa, and of a sign.
CONSTANT(unit, $0x41a0000000000001)
CONSTANT(unitFrom, $0x41a0000000000000)
CONSTANT(angle, $0x41c0000000000001)
CONSTANT(angleFrom, $0x41c0000000400000)
CONSTANT(eighth, $0x20000000)
CONSTANT(fromRoot, $0x00095f619980c433)
CONSTANT(exponent, $0x43300000000003ff)
CONSTANT(mantissa, $0x000fffffffffffff)
CONSTANT(sign, $0x8000000000000000)
CONSTANT(minusHalf, $0xbfe0000000000000)

// MANTISSA is the first part of logarithm(Float64(words)): f = m-1, and k.
//
// The upper 24 bits of a word and a one are made the last bits of 2²⁷, the last of which
// is 2⁻²⁵; what they add to 2²⁷ is u, as exact as Float64's. If to the bits of u is
// added what makes those of √½ those of 1, their exponent is k (and 1023), and their
// mantissa what the bits of m are beyond those of √½.
#define MANTISSA(words, f, k) \
	VMOVDQU words, f \
	VPSLLQ  $32, f, f \
	VPSRLQ  $39, f, f \
	VPOR    unit<>(SB), f, f \
	VSUBPD  unitFrom<>(SB), f, f \
	VPADDQ  fromRoot<>(SB), f, f \
	VPSRLQ  $52, f, k \
	VPAND   mantissa<>(SB), f, f \
	VPOR    exact<>(SB), k, k \
	VPADDQ  root<>(SB), f, f \
	VSUBPD  exponent<>(SB), k, k \
	VSUBPD  one<>(SB), f, f

// QUOTIENT is its second part: s = f/(2+f), s² and s⁴.
#define QUOTIENT(f, s, s2, s4) \
	VADDPD two<>(SB), f, s \
	VDIVPD s, f, s \
	VMULPD s, s, s2 \
	VMULPD s2, s2, s4

// SUM is its third part: the sum t; s2 is overwritten.
#define SUM(s2, s4, t) \
	VMULPD l7<>(SB), s4, t \
	VADDPD l5<>(SB), t, t \
	VMULPD s4, t, t \
	VADDPD l3<>(SB), t, t \
	VMULPD s4, t, t \
	VADDPD l1<>(SB), t, t \
	VMULPD s2, t, t \
	VMULPD l6<>(SB), s4, s2 \
	VADDPD l4<>(SB), s2, s2 \
	VMULPD s4, s2, s2 \
	VADDPD l2<>(SB), s2, s2 \
	VMULPD s4, s2, s2 \
	VADDPD s2, t, t

// RADIUS is its last part, and the root r = √(−2 ln u).
#define RADIUS(f, k, s, h, t, r) \
	VMULPD half<>(SB), f, h \
	VMULPD f, h, h /* half */ \
	VADDPD t, h, t \
	VMULPD s, t, t \
	VMULPD ln2Lo<>(SB), k, s \
	VADDPD s, t, t /* low */ \
	VSUBPD t, h, t \
	VSUBPD f, t, t \
	VMULPD ln2Hi<>(SB), k, k \
	VSUBPD t, k, k \
	VMULPD minus2<>(SB), k, k \
	VSQRTPD k, r

// ANGLE is the first part of turn(Float64(words)): the angle x to the next quarter,
// z = x², and q, which has that quarter's number in bits 30 and 31.
//
// If an eighth of a turn is added to a word, its upper two bits are that number, and the
// other bits the angle and an eighth. They are made a number as in MANTISSA.
#define ANGLE(words, q, x, z) \
	VMOVDQU words, q \
	VPADDQ  eighth<>(SB), q, q \
	VPSLLQ  $34, q, x \
	VPSRLQ  $41, x, x \
	VPOR    angle<>(SB), x, x \
	VSUBPD  angleFrom<>(SB), x, x \
	VMULPD  quarter<>(SB), x, x \
	VMULPD  x, x, z

// SINE is the sine s.
#define SINE(x, z, s) \
	VMULPD s0<>(SB), z, s \
	VADDPD s1<>(SB), s, s \
	VMULPD z, s, s \
	VADDPD s2<>(SB), s, s \
	VMULPD z, s, s \
	VADDPD s3<>(SB), s, s \
	VMULPD z, s, s \
	VADDPD s4<>(SB), s, s \
	VMULPD z, s, s \
	VADDPD s5<>(SB), s, s \
	VMULPD z, s, s \
	VMULPD x, s, s \
	VADDPD x, s, s

// COSINE is the cosine c; z is overwritten.
#define COSINE(z, c) \
	VMULPD c0<>(SB), z, c \
	VADDPD c1<>(SB), c, c \
	VMULPD z, c, c \
	VADDPD c2<>(SB), c, c \
	VMULPD z, c, c \
	VADDPD c3<>(SB), c, c \
	VMULPD z, c, c \
	VADDPD c4<>(SB), c, c \
	VMULPD z, c, c \
	VADDPD c5<>(SB), c, c \
	VMULPD z, c, c \
	VMULPD z, c, c \
	VMULPD minusHalf<>(SB), z, z \
	VADDPD one<>(SB), z, z \
	VADDPD z, c, c

// QUARTER is the last part, and the product with r: sine and cosine change places where
// the quarter's number is odd, the sine's sign changes where bit 1 of it is set, and the
// cosine's where bit 1 of the next number is.
#define QUARTER(q, s, c, r, odd, t) \
	VPSLLQ $33, q, odd \
	VPSLLQ $32, q, q \
	VBLENDVPD odd, c, s, t \
	VBLENDVPD odd, s, c, c \
	VPXOR  q, odd, odd \
	VPAND  sign<>(SB), q, q \
	VPAND  sign<>(SB), odd, odd \
	VPXOR  q, t, s \
	VPXOR  odd, c, c \
	VMULPD r, s, s \
	VMULPD r, c, c

// BOXMULLER is BoxMuller of eight words at u and eight at v: the first normals are in
// Y3 and Y9, the second in Y2 and Y8. Y13 and Y14 are left alone.
#define BOXMULLER(u, v) \
	MANTISSA(0(u), Y0, Y1) \
	QUOTIENT(Y0, Y2, Y3, Y4) \
	MANTISSA(32(u), Y6, Y7) \
	QUOTIENT(Y6, Y8, Y9, Y10) \
	SUM(Y3, Y4, Y5) \
	SUM(Y9, Y10, Y11) \
	RADIUS(Y0, Y1, Y2, Y3, Y5, Y12) \
	RADIUS(Y6, Y7, Y8, Y9, Y11, Y15) \
	ANGLE(0(v), Y4, Y0, Y1) \
	ANGLE(32(v), Y10, Y6, Y7) \
	SINE(Y0, Y1, Y2) \
	SINE(Y6, Y7, Y8) \
	COSINE(Y1, Y3) \
	COSINE(Y7, Y9) \
	QUARTER(Y4, Y2, Y3, Y12, Y0, Y1) \
	QUARTER(Y10, Y8, Y9, Y15, Y6, Y7)

// func boxMuller8AVX2(z0, z1 *[8]float64, w0, w1 *[8]uint64)
TEXT ·boxMuller8AVX2(SB), NOSPLIT, $0-32
	MOVQ z0+0(FP), DI
	MOVQ z1+8(FP), SI
	MOVQ w0+16(FP), AX
	MOVQ w1+24(FP), BX
	BOXMULLER(AX, BX)
	VMOVUPD Y3, 0(DI)
	VMOVUPD Y9, 32(DI)
	VMOVUPD Y2, 0(SI)
	VMOVUPD Y8, 32(SI)
	VZEROUPPER
	RET

// SINGLES rounds the numbers in a and b to eight float32s in z; xa and xb are the lower
// halves of a and b.
#define SINGLES(a, b, xa, xb, z) \
	VCVTPD2PSY a, xa \
	VCVTPD2PSY b, xb \
	VINSERTF128 $1, xb, a, z

// func normalsAVX2(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
//
// The words of eight blocks are in memory at AX, a multiple of 32.
TEXT ·normalsAVX2(SB), NOSPLIT, $288-40
	MOVQ dst+0(FP), DI
	MOVQ groups+8(FP), CX
	LEAQ words-257(SP), AX
	ANDQ $~31, AX
	LEAQ 64(AX), BX
	LEAQ 128(AX), DX
	LEAQ 192(AX), SI

loop:
	NEXTBLOCKS
	KEEP(AX)
	BOXMULLER(AX, BX)
	SINGLES(Y3, Y9, X3, X9, Y13)
	SINGLES(Y2, Y8, X2, X8, Y14)
	BOXMULLER(DX, SI)
	SINGLES(Y3, Y9, X3, X9, Y15)
	SINGLES(Y2, Y8, X2, X8, Y11)
	WRITE
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET
