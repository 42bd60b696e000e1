//go:build !noasm

#include "textflag.h"

// Constants of BoxMuller, see normal.go.
DATA tiny<>+0(SB)/8, $0x3e70000000000000
GLOBL tiny<>(SB), RODATA|NOPTR, $8
DATA half<>+0(SB)/8, $0x3fe0000000000000
GLOBL half<>(SB), RODATA|NOPTR, $8
DATA one<>+0(SB)/8, $0x3ff0000000000000
GLOBL one<>(SB), RODATA|NOPTR, $8
DATA two<>+0(SB)/8, $0x4000000000000000
GLOBL two<>(SB), RODATA|NOPTR, $8
DATA four<>+0(SB)/8, $0x4010000000000000
GLOBL four<>(SB), RODATA|NOPTR, $8
DATA minus2<>+0(SB)/8, $0xc000000000000000
GLOBL minus2<>(SB), RODATA|NOPTR, $8
DATA root<>+0(SB)/8, $0x3fe6a09e667f3bcd
GLOBL root<>(SB), RODATA|NOPTR, $8
DATA ln2Hi<>+0(SB)/8, $0x3fe62e42fee00000
GLOBL ln2Hi<>(SB), RODATA|NOPTR, $8
DATA ln2Lo<>+0(SB)/8, $0x3dea39ef35793c76
GLOBL ln2Lo<>(SB), RODATA|NOPTR, $8
DATA l1<>+0(SB)/8, $0x3fe5555555555593
GLOBL l1<>(SB), RODATA|NOPTR, $8
DATA l2<>+0(SB)/8, $0x3fd999999997fa04
GLOBL l2<>(SB), RODATA|NOPTR, $8
DATA l3<>+0(SB)/8, $0x3fd2492494229359
GLOBL l3<>(SB), RODATA|NOPTR, $8
DATA l4<>+0(SB)/8, $0x3fcc71c51d8e78af
GLOBL l4<>(SB), RODATA|NOPTR, $8
DATA l5<>+0(SB)/8, $0x3fc7466496cb03de
GLOBL l5<>(SB), RODATA|NOPTR, $8
DATA l6<>+0(SB)/8, $0x3fc39a09d078c69f
GLOBL l6<>(SB), RODATA|NOPTR, $8
DATA l7<>+0(SB)/8, $0x3fc2f112df3e5244
GLOBL l7<>(SB), RODATA|NOPTR, $8
DATA exact<>+0(SB)/8, $0x4330000000000000
GLOBL exact<>(SB), RODATA|NOPTR, $8
DATA round<>+0(SB)/8, $0x4338000000000000
GLOBL round<>(SB), RODATA|NOPTR, $8
DATA quarter<>+0(SB)/8, $0x3ff921fb54442d18
GLOBL quarter<>(SB), RODATA|NOPTR, $8
DATA s0<>+0(SB)/8, $0x3de5d8fd1fd19ccd
GLOBL s0<>(SB), RODATA|NOPTR, $8
DATA s1<>+0(SB)/8, $0xbe5ae5e5a9291f5d
GLOBL s1<>(SB), RODATA|NOPTR, $8
DATA s2<>+0(SB)/8, $0x3ec71de3567d48a1
GLOBL s2<>(SB), RODATA|NOPTR, $8
DATA s3<>+0(SB)/8, $0xbf2a01a019bfdf03
GLOBL s3<>(SB), RODATA|NOPTR, $8
DATA s4<>+0(SB)/8, $0x3f8111111110f7d0
GLOBL s4<>(SB), RODATA|NOPTR, $8
DATA s5<>+0(SB)/8, $0xbfc5555555555548
GLOBL s5<>(SB), RODATA|NOPTR, $8
DATA c0<>+0(SB)/8, $0xbda8fa49a0861a9b
GLOBL c0<>(SB), RODATA|NOPTR, $8
DATA c1<>+0(SB)/8, $0x3e21ee9d7b4e3f05
GLOBL c1<>(SB), RODATA|NOPTR, $8
DATA c2<>+0(SB)/8, $0xbe927e4f7eac4bc6
GLOBL c2<>(SB), RODATA|NOPTR, $8
DATA c3<>+0(SB)/8, $0x3efa01a019c844f5
GLOBL c3<>(SB), RODATA|NOPTR, $8
DATA c4<>+0(SB)/8, $0xbf56c16c16c14f91
GLOBL c4<>(SB), RODATA|NOPTR, $8
DATA c5<>+0(SB)/8, $0x3fa555555555554b
GLOBL c5<>(SB), RODATA|NOPTR, $8
DATA lane<>+0(SB)/8, $0
DATA lane<>+8(SB)/8, $1
DATA lane<>+16(SB)/8, $2
DATA lane<>+24(SB)/8, $3
DATA lane<>+32(SB)/8, $4
DATA lane<>+40(SB)/8, $5
DATA lane<>+48(SB)/8, $6
DATA lane<>+56(SB)/8, $7
GLOBL lane<>(SB), RODATA|NOPTR, $64
DATA bit0<>+0(SB)/8, $1
GLOBL bit0<>(SB), RODATA|NOPTR, $8
DATA bit1<>+0(SB)/8, $2
GLOBL bit1<>(SB), RODATA|NOPTR, $8

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

// WRITE writes element j of each of eight blocks, as a float32 in Y13, Y14, Y15 and
// Y11, in order, and goes on to the next 32 numbers.
#define WRITE \
	VUNPCKLPS Y14, Y13, Y0 \
	VUNPCKHPS Y14, Y13, Y1 \
	VUNPCKLPS Y11, Y15, Y2 \
	VUNPCKHPS Y11, Y15, Y3 \
	VUNPCKLPD Y2, Y0, Y6 \
	VUNPCKHPD Y2, Y0, Y7 \
	VUNPCKLPD Y3, Y1, Y10 \
	VUNPCKHPD Y3, Y1, Y11 \
	VMOVUPS X6, 0(DI) \
	VMOVUPS X7, 16(DI) \
	VMOVUPS X10, 32(DI) \
	VMOVUPS X11, 48(DI) \
	VEXTRACTF128 $1, Y6, 64(DI) \
	VEXTRACTF128 $1, Y7, 80(DI) \
	VEXTRACTF128 $1, Y10, 96(DI) \
	VEXTRACTF128 $1, Y11, 112(DI) \
	ADDQ $128, DI

// func blocks8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·blocks8(SB), NOSPLIT, $0-32
	ARGUMENTS
	VPADDQ lane<>(SB), Z0, Z0
	ROUNDS
	KEEP
	VZEROUPPER
	RET

// func samples8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64)
TEXT ·samples8(SB), NOSPLIT, $0-32
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

// func boxMuller8(z0, z1 *[8]float64, w0, w1 *[8]uint64)
TEXT ·boxMuller8(SB), NOSPLIT, $0-32
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

// func uniforms(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·uniforms(SB), NOSPLIT, $0-40
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

// func normals(dst *float32, groups int, i, sample, step, tag uint32, seed uint64)
TEXT ·normals(SB), NOSPLIT, $0-40
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
