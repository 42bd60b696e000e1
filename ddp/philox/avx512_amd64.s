//go:build !noasm

#include "textflag.h"
#include "shared_amd64.h"

// Constants of BoxMuller that AVX2 does without.
CONSTANT(tiny, $0x3e70000000000000)
CONSTANT(four, $0x4010000000000000)
CONSTANT(round, $0x4338000000000000)
CONSTANT(bit0, $1)
CONSTANT(bit1, $2)

// ROUND is one round on the words Z0 … Z3 under the key (Z6, Z7). Words and keys
// are the lower halves of 64 bits; what is in the upper halves has no influence.
#define ROUND \
	VPMULUDQ Z4, Z0, Z10 \
	VPMULUDQ Z5, Z2, Z11 \
	VPSRLQ   $32, Z11, Z0 \
	VPSRLQ   $32, Z10, Z2 \
	VPTERNLOGQ $0x96, Z6, Z1, Z0 \
	VPTERNLOGQ $0x96, Z7, Z3, Z2 \
	VMOVDQA64 Z11, Z1 \
	VMOVDQA64 Z10, Z3

#define NEXTKEY \
	VPADDQ Z8, Z6, Z6 \
	VPADDQ Z9, Z7, Z7

#define BROADCAST(value, z) \
	MOVQ value, AX \
	VPBROADCASTQ AX, z

// ARGUMENTS loads the counter into Z0 … Z3 and the key into Z6 and Z7, equal in all
// lanes, and the constants of the rounds.
#define ARGUMENTS \
	MOVQ dst+0(FP), DI \
	MOVL i+8(FP), AX \
	VPBROADCASTQ AX, Z0 \
	MOVL sample+12(FP), AX \
	VPBROADCASTQ AX, Z1 \
	MOVL step+16(FP), AX \
	VPBROADCASTQ AX, Z2 \
	MOVL tag+20(FP), AX \
	VPBROADCASTQ AX, Z3 \
	MOVQ seed+24(FP), AX \
	VPBROADCASTQ AX, Z6 \
	SHRQ $32, AX \
	VPBROADCASTQ AX, Z7 \
	BROADCAST($0xD2511F53, Z4) \
	BROADCAST($0xCD9E8D57, Z5) \
	BROADCAST($0x9E3779B9, Z8) \
	BROADCAST($0xBB67AE85, Z9) \
	BROADCAST($0xFFFFFFFF, Z12)

// ROUNDS is ten rounds.
#define ROUNDS \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	NEXTKEY \
	ROUND \
	VPANDQ Z12, Z0, Z0 \
	VPANDQ Z12, Z1, Z1 \
	VPANDQ Z12, Z2, Z2 \
	VPANDQ Z12, Z3, Z3

#define KEEP \
	VMOVDQU64 Z0, 0(DI) \
	VMOVDQU64 Z1, 64(DI) \
	VMOVDQU64 Z2, 128(DI) \
	VMOVDQU64 Z3, 192(DI)

// STREAM loads what is the same for all blocks of a stream into Z20 … Z25: the
// counter of the first eight, and the key.
#define STREAM \
	MOVQ dst+0(FP), DI \
	MOVQ groups+8(FP), CX \
	MOVL i+16(FP), AX \
	VPBROADCASTQ AX, Z20 \
	VPADDQ lane<>(SB), Z20, Z20 \
	MOVL sample+20(FP), AX \
	VPBROADCASTQ AX, Z21 \
	MOVL step+24(FP), AX \
	VPBROADCASTQ AX, Z22 \
	MOVL tag+28(FP), AX \
	VPBROADCASTQ AX, Z23 \
	MOVQ seed+32(FP), AX \
	VPBROADCASTQ AX, Z24 \
	SHRQ $32, AX \
	VPBROADCASTQ AX, Z25 \
	BROADCAST($8, Z26) \
	BROADCAST($0xD2511F53, Z4) \
	BROADCAST($0xCD9E8D57, Z5) \
	BROADCAST($0x9E3779B9, Z8) \
	BROADCAST($0xBB67AE85, Z9) \
	BROADCAST($0xFFFFFFFF, Z12)

// BLOCKS is the next eight blocks of the stream.
#define BLOCKS \
	VMOVDQA64 Z20, Z0 \
	VMOVDQA64 Z21, Z1 \
	VMOVDQA64 Z22, Z2 \
	VMOVDQA64 Z23, Z3 \
	VMOVDQA64 Z24, Z6 \
	VMOVDQA64 Z25, Z7 \
	ROUNDS \
	VPADDQ Z26, Z20, Z20

// func blocks8AVX512(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·blocks8AVX512(SB), NOSPLIT, $0-32
	ARGUMENTS
	VPADDQ lane<>(SB), Z0, Z0
	ROUNDS
	KEEP
	VZEROUPPER
	RET

// func samples8AVX512(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·samples8AVX512(SB), NOSPLIT, $0-32
	ARGUMENTS
	VPADDQ lane<>(SB), Z1, Z1
	ROUNDS
	KEEP
	VZEROUPPER
	RET

// UNIT turns the words z into numbers in (0, 1), as Float64 does.
#define UNIT(z) \
	VPSRLQ $8, z, z \
	VPORQ.BCST exact<>(SB), z, z \
	VSUBPD.BCST exact<>(SB), z, z \
	VADDPD.BCST half<>(SB), z, z \
	VMULPD.BCST tiny<>(SB), z, z

// BOXMULLER is BoxMuller of the words Z0 and Z1: Z6 is the first normal, Z5 the second.
#define BOXMULLER \
	UNIT(Z0) \
	UNIT(Z1) \
	/* logarithm: Z2 = m, Z3 = k */ \
	VGETMANTPD $2, Z0, Z2 \
	VGETEXPPD  Z0, Z3 \
	VADDPD.BCST one<>(SB), Z3, Z3 \
	VBROADCASTSD root<>(SB), Z4 \
	VCMPPD $1, Z4, Z2, K1 \
	VADDPD Z2, Z2, K1, Z2 \
	VSUBPD.BCST one<>(SB), Z3, K1, Z3 \
	VSUBPD.BCST one<>(SB), Z2, Z2 /* f */ \
	VADDPD.BCST two<>(SB), Z2, Z4 \
	VDIVPD Z4, Z2, Z4 /* s */ \
	VMULPD Z4, Z4, Z5 /* s² */ \
	VMULPD Z5, Z5, Z6 /* s⁴ */ \
	VMULPD.BCST l7<>(SB), Z6, Z7 \
	VADDPD.BCST l5<>(SB), Z7, Z7 \
	VMULPD Z6, Z7, Z7 \
	VADDPD.BCST l3<>(SB), Z7, Z7 \
	VMULPD Z6, Z7, Z7 \
	VADDPD.BCST l1<>(SB), Z7, Z7 \
	VMULPD Z5, Z7, Z7 \
	VMULPD.BCST l6<>(SB), Z6, Z8 \
	VADDPD.BCST l4<>(SB), Z8, Z8 \
	VMULPD Z6, Z8, Z8 \
	VADDPD.BCST l2<>(SB), Z8, Z8 \
	VMULPD Z6, Z8, Z8 \
	VADDPD Z8, Z7, Z7 /* sum */ \
	VMULPD.BCST half<>(SB), Z2, Z9 \
	VMULPD Z2, Z9, Z9 /* half */ \
	VADDPD Z7, Z9, Z7 \
	VMULPD Z4, Z7, Z7 \
	VMULPD.BCST ln2Lo<>(SB), Z3, Z10 \
	VADDPD Z10, Z7, Z7 /* low */ \
	VSUBPD Z7, Z9, Z7 \
	VSUBPD Z2, Z7, Z7 \
	VMULPD.BCST ln2Hi<>(SB), Z3, Z3 \
	VSUBPD Z7, Z3, Z3 \
	VMULPD.BCST minus2<>(SB), Z3, Z3 \
	VSQRTPD Z3, Z3 /* r */ \
	/* turn: Z2 = near, Z1 = x, Z4 = z */ \
	VMULPD.BCST four<>(SB), Z1, Z1 \
	VBROADCASTSD round<>(SB), Z5 \
	VADDPD Z5, Z1, Z2 \
	VSUBPD Z5, Z2, Z4 \
	VSUBPD Z4, Z1, Z1 \
	VMULPD.BCST quarter<>(SB), Z1, Z1 \
	VMULPD Z1, Z1, Z4 \
	VMULPD.BCST s0<>(SB), Z4, Z5 \
	VADDPD.BCST s1<>(SB), Z5, Z5 \
	VMULPD Z4, Z5, Z5 \
	VADDPD.BCST s2<>(SB), Z5, Z5 \
	VMULPD Z4, Z5, Z5 \
	VADDPD.BCST s3<>(SB), Z5, Z5 \
	VMULPD Z4, Z5, Z5 \
	VADDPD.BCST s4<>(SB), Z5, Z5 \
	VMULPD Z4, Z5, Z5 \
	VADDPD.BCST s5<>(SB), Z5, Z5 \
	VMULPD Z4, Z5, Z5 \
	VMULPD Z1, Z5, Z5 \
	VADDPD Z1, Z5, Z5 /* s */ \
	VMULPD.BCST c0<>(SB), Z4, Z6 \
	VADDPD.BCST c1<>(SB), Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VADDPD.BCST c2<>(SB), Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VADDPD.BCST c3<>(SB), Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VADDPD.BCST c4<>(SB), Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VADDPD.BCST c5<>(SB), Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VMULPD Z4, Z6, Z6 \
	VMULPD.BCST half<>(SB), Z4, Z7 \
	VBROADCASTSD one<>(SB), Z8 \
	VSUBPD Z7, Z8, Z7 \
	VADDPD Z7, Z6, Z6 /* c */ \
	VPBROADCASTQ bit0<>(SB), Z9 \
	VPTESTMQ Z9, Z2, K1 \
	VMOVAPD Z5, Z7 \
	VMOVAPD Z6, K1, Z5 /* sine */ \
	VMOVAPD Z7, K1, Z6 /* cosine */ \
	VPADDQ Z9, Z2, Z8 \
	VPBROADCASTQ bit1<>(SB), Z9 \
	VPANDQ Z9, Z2, Z2 \
	VPANDQ Z9, Z8, Z8 \
	VPSLLQ $62, Z2, Z2 \
	VPSLLQ $62, Z8, Z8 \
	VPXORQ Z2, Z5, Z5 \
	VPXORQ Z8, Z6, Z6 \
	VMULPD Z3, Z6, Z6 \
	VMULPD Z3, Z5, Z5

// func boxMuller8AVX512(z0, z1 *[8]float64, w0, w1 *[8]uint64)
TEXT ·boxMuller8AVX512(SB), NOSPLIT, $0-32
	MOVQ z0+0(FP), DI
	MOVQ z1+8(FP), SI
	MOVQ w0+16(FP), AX
	MOVQ w1+24(FP), BX
	VMOVDQU64 (AX), Z0
	VMOVDQU64 (BX), Z1
	BOXMULLER
	VMOVUPD Z6, (DI)
	VMOVUPD Z5, (SI)
	VZEROUPPER
	RET

// func uniformsAVX512(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·uniformsAVX512(SB), NOSPLIT, $0-40
	STREAM

loop:
	BLOCKS
	UNIT(Z0)
	UNIT(Z1)
	UNIT(Z2)
	UNIT(Z3)
	VCVTPD2PS Z0, Y13
	VCVTPD2PS Z1, Y14
	VCVTPD2PS Z2, Y15
	VCVTPD2PS Z3, Y11
	WRITE
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET

// func normalsAVX512(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·normalsAVX512(SB), NOSPLIT, $0-40
	STREAM
	VMOVDQA64 Z4, Z27
	VMOVDQA64 Z5, Z28
	VMOVDQA64 Z8, Z29
	VMOVDQA64 Z9, Z30

loop:
	BLOCKS
	VMOVDQA64 Z2, Z17
	VMOVDQA64 Z3, Z18
	BOXMULLER
	VCVTPD2PS Z6, Y13
	VCVTPD2PS Z5, Y14
	VMOVDQA64 Z17, Z0
	VMOVDQA64 Z18, Z1
	BOXMULLER
	VCVTPD2PS Z6, Y15
	VCVTPD2PS Z5, Y11
	WRITE
	VMOVDQA64 Z27, Z4
	VMOVDQA64 Z28, Z5
	VMOVDQA64 Z29, Z8
	VMOVDQA64 Z30, Z9
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET
