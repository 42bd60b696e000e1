//go:build !noasm

#include "textflag.h"
#include "go_asm.h"

// Go's assembler has no names for AMX and AVX512_BF16: what stands here has its
// registers fixed.
#define LDTILECFG_AX BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILERELEASE  BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0
#define TILEZERO0    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0
#define TILEZERO1    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8
#define TILEZERO2    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd0
#define TILEZERO3    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd8

// C: tiles 0 (R8), 1 (R10), 2 (R9), 3 (R11), rows DX bytes apart.
#define LOADC0  BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x04; BYTE $0x10
#define LOADC1  BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x0c; BYTE $0x12
#define LOADC2  BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x14; BYTE $0x11
#define LOADC3  BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x1c; BYTE $0x13
#define STOREC0 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x10
#define STOREC1 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x0c; BYTE $0x12
#define STOREC2 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x14; BYTE $0x11
#define STOREC3 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x1c; BYTE $0x13

// A: tiles 4 (AX) and 5 (BX), rows CX bytes apart; B: tiles 6 (SI) and 7 (DI), rows R12.
#define LOADA4 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x08
#define LOADA5 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x0b
#define LOADB6 BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x34; BYTE $0x26
#define LOADB7 BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x3c; BYTE $0x27

// TDPBF16PS: C += A·B.
#define MULTIPLY0 BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xc4
#define MULTIPLY1 BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xcc
#define MULTIPLY2 BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xd5
#define MULTIPLY3 BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xdd

// VCVTNEPS2BF16 of Z0 to Y0, of Z1 to Y1.
#define ROUND0 BYTE $0x62; BYTE $0xf2; BYTE $0x7e; BYTE $0x48; BYTE $0x72; BYTE $0xc0
#define ROUND1 BYTE $0x62; BYTE $0xf2; BYTE $0x7e; BYTE $0x48; BYTE $0x72; BYTE $0xc9

// tileConfig: palette 1, eight tiles of 16 rows of 64 bytes.
DATA tileConfig<>+0(SB)/8, $1
DATA tileConfig<>+8(SB)/8, $0
DATA tileConfig<>+16(SB)/8, $0x0040004000400040
DATA tileConfig<>+24(SB)/8, $0x0040004000400040
DATA tileConfig<>+32(SB)/8, $0
DATA tileConfig<>+40(SB)/8, $0
DATA tileConfig<>+48(SB)/8, $0x1010101010101010
DATA tileConfig<>+56(SB)/8, $0
GLOBL tileConfig<>(SB), RODATA|NOPTR, $64

// func multiplyAMX(p *block, n int)
//
// R13: a block; R14: steps to go; R15: their offsets.
TEXT ·multiplyAMX(SB), NOSPLIT, $16-16
	MOVQ p+0(FP), R13
	LEAQ tileConfig<>(SB), AX
	LDTILECFG_AX
	MOVQ $64, R12

block:
	MOVQ block_aRow(R13), CX
	MOVQ block_cRow(R13), DX
	MOVQ block_c(R13), R8
	MOVQ (block_c+8)(R13), R9
	MOVQ block_b(R13), SI
	MOVQ block_panels(R13), AX
	MOVQ AX, left-8(SP)

panels: // two of them
	MOVQ SI, first-16(SP)
	MOVQ SI, DI
	ADDQ block_bPanel(R13), DI
	LEAQ 64(R8), R10
	LEAQ 64(R9), R11
	MOVQ block_offsets(R13), R15
	MOVQ block_steps(R13), R14
	CMPB block_add(R13), $0
	JNE  load
	TILEZERO0
	TILEZERO1
	TILEZERO2
	TILEZERO3
	JMP  step

load:
	LOADC0
	LOADC1
	LOADC2
	LOADC3

step:
	MOVQ (R15), AX
	MOVQ AX, BX
	ADDQ block_a(R13), AX
	ADDQ (block_a+8)(R13), BX
	LOADB6
	LOADA4
	MULTIPLY0
	LOADB7
	MULTIPLY1
	LOADA5
	MULTIPLY2
	MULTIPLY3
	ADDQ $1024, SI
	ADDQ $1024, DI
	ADDQ $8, R15
	DECQ R14
	JNZ  step

	STOREC0
	STOREC1
	STOREC2
	STOREC3
	MOVQ first-16(SP), SI
	ADDQ block_bPanel(R13), SI
	ADDQ block_bPanel(R13), SI
	ADDQ $128, R8
	ADDQ $128, R9
	SUBQ $2, left-8(SP)
	JGT  panels

	ADDQ $block__size, R13
	DECQ n+8(FP)
	JNZ  block
	TILERELEASE
	RET

// func roundAMX(dst unsafe.Pointer, src *float32, n int)
TEXT ·roundAMX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

round:
	VMOVUPS (SI), Z0
	ROUND0
	VMOVDQU Y0, (DI)
	ADDQ    $64, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     round
	VZEROUPPER
	RET

// func pairsAMX(dst unsafe.Pointer, places *int, a, b *float32, step, n int)
TEXT ·pairsAMX(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ places+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), BX
	MOVQ step+32(FP), DX
	MOVQ n+40(FP), CX

pair:
	VMOVUPS   (SI), Z0
	VMOVUPS   (BX), Z1
	ROUND0
	ROUND1
	VPMOVZXWD Y0, Z0
	VPMOVZXWD Y1, Z1
	VPSLLD    $16, Z1, Z1
	VPORD     Z1, Z0, Z0
	MOVQ      (R8), AX
	VMOVDQU32 Z0, (DI)(AX*1)
	ADDQ      DX, SI
	ADDQ      DX, BX
	ADDQ      $8, R8
	DECQ      CX
	JNZ       pair
	VZEROUPPER
	RET

// func interleaveAMX(dst unsafe.Pointer, half, step int, a, b unsafe.Pointer, offsets *int, n int)
TEXT ·interleaveAMX(SB), NOSPLIT, $0-56
	MOVQ  dst+0(FP), DI
	MOVQ  half+8(FP), R9
	MOVQ  step+16(FP), DX
	MOVQ  a+24(FP), SI
	MOVQ  b+32(FP), BX
	MOVQ  offsets+40(FP), R8
	MOVQ  n+48(FP), CX
	MOVL  $0xaaaaaaaa, AX
	KMOVD AX, K1             // the upper half of each word

vector:
	MOVQ      (R8), AX
	VMOVDQU32 (SI)(AX*1), Z0
	VMOVDQU32 (BX)(AX*1), Z1
	VPSRLD    $16, Z0, Z2
	VPSLLD    $16, Z1, Z3
	VMOVDQU16 Z3, K1, Z0
	VMOVDQU16 Z1, K1, Z2
	VMOVDQU32 Z0, (DI)
	VMOVDQU32 Z2, (DI)(R9*1)
	ADDQ      DX, DI
	ADDQ      $8, R8
	DECQ      CX
	JNZ       vector
	VZEROUPPER
	RET

// func gatherAMX(dst unsafe.Pointer, row int, rows *unsafe.Pointer, offsets *int, n, steps int)
TEXT ·gatherAMX(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ row+8(FP), R10
	MOVQ rows+16(FP), R8
	MOVQ n+32(FP), DX

row:
	MOVQ (R8), SI
	MOVQ DI, BX
	MOVQ offsets+24(FP), R9
	MOVQ steps+40(FP), CX

step:
	MOVQ      (R9), AX
	VMOVDQU32 (SI)(AX*1), Z0
	VMOVDQU32 Z0, (BX)
	ADDQ      $64, BX
	ADDQ      $8, R9
	DECQ      CX
	JNZ       step

	ADDQ R10, DI
	ADDQ $8, R8
	DECQ DX
	JNZ  row
	VZEROUPPER
	RET
