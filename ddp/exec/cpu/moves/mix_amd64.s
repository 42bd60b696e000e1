//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// func mix16(d *float32, from *sourceFloat32, sources, n, pixels, dy, dx int)
// d[i] = Σ w·x[i] over the sources, in their order, one rounding each (AVX-512), for
// n numbers of each pixel; neither they, nor the sources, nor the pixels are none. What is
// left of n is done in the lanes of K1.
TEXT ·mix16(SB), NOSPLIT, $0-56
	MOVQ d+0(FP), DI
	MOVQ from+8(FP), R8
	MOVQ sources+16(FP), R9
	MOVQ pixels+32(FP), R10
	MOVQ dy+40(FP), R11
	MOVQ dx+48(FP), R12
	SHLQ $2, R11
	SHLQ $2, R12
	XORQ R13, R13 // bytes from a source to that of the pixel
	MOVQ n+24(FP), CX
	ANDQ $15, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1

pixel:
	MOVQ n+24(FP), CX
	XORQ DX, DX // bytes done

wide:
	CMPQ CX, $64
	JLT narrow
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	MOVQ R8, BX
	MOVQ R9, AX

wideSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Z4
	VFMADD231PS (SI)(DX*1), Z4, Z0
	VFMADD231PS 64(SI)(DX*1), Z4, Z1
	VFMADD231PS 128(SI)(DX*1), Z4, Z2
	VFMADD231PS 192(SI)(DX*1), Z4, Z3
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ wideSource
	VMOVUPS Z0, (DI)(DX*1)
	VMOVUPS Z1, 64(DI)(DX*1)
	VMOVUPS Z2, 128(DI)(DX*1)
	VMOVUPS Z3, 192(DI)(DX*1)
	ADDQ $256, DX
	SUBQ $64, CX
	JMP wide

narrow:
	CMPQ CX, $16
	JLT  rest
	VPXORD Z0, Z0, Z0
	MOVQ R8, BX
	MOVQ R9, AX

narrowSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Z4
	VFMADD231PS (SI)(DX*1), Z4, Z0
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ narrowSource
	VMOVUPS Z0, (DI)(DX*1)
	ADDQ $64, DX
	SUBQ $16, CX
	JMP narrow

rest:
	TESTQ CX, CX
	JEQ next
	VPXORD Z0, Z0, Z0
	MOVQ R8, BX
	MOVQ R9, AX

restSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Z4
	VFMADD231PS (SI)(DX*1), Z4, K1, Z0
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ restSource
	VMOVUPS Z0, K1, (DI)(DX*1)

next:
	ADDQ R11, DI
	ADDQ R12, R13
	DECQ R10
	JNZ pixel
	VZEROUPPER
	RET

// func mix8(d *float32, from *sourceFloat32, sources, n, pixels, dy, dx int)
// mix16 in AVX2 and FMA, 32 and 8 channels at a time. What is left of n is done in the
// lanes of Y13.
TEXT ·mix8(SB), NOSPLIT, $0-56
	MOVQ d+0(FP), DI
	MOVQ from+8(FP), R8
	MOVQ sources+16(FP), R9
	MOVQ pixels+32(FP), R10
	MOVQ dy+40(FP), R11
	MOVQ dx+48(FP), R12
	SHLQ $2, R11
	SHLQ $2, R12
	XORQ R13, R13 // bytes from a source to that of the pixel
	MOVQ n+24(FP), CX
	ANDQ $7, CX
	SHLQ $2, CX
	LEAQ ·lanes+32(SB), AX
	SUBQ CX, AX
	VMOVUPS (AX), Y13

pixel:
	MOVQ n+24(FP), CX
	XORQ DX, DX // bytes done

wide:
	CMPQ CX, $32
	JLT narrow
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	MOVQ R8, BX
	MOVQ R9, AX

wideSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Y4
	VFMADD231PS (SI)(DX*1), Y4, Y0
	VFMADD231PS 32(SI)(DX*1), Y4, Y1
	VFMADD231PS 64(SI)(DX*1), Y4, Y2
	VFMADD231PS 96(SI)(DX*1), Y4, Y3
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ wideSource
	VMOVUPS Y0, (DI)(DX*1)
	VMOVUPS Y1, 32(DI)(DX*1)
	VMOVUPS Y2, 64(DI)(DX*1)
	VMOVUPS Y3, 96(DI)(DX*1)
	ADDQ $128, DX
	SUBQ $32, CX
	JMP wide

narrow:
	CMPQ CX, $8
	JLT  rest
	VXORPS Y0, Y0, Y0
	MOVQ R8, BX
	MOVQ R9, AX

narrowSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Y4
	VFMADD231PS (SI)(DX*1), Y4, Y0
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ narrowSource
	VMOVUPS Y0, (DI)(DX*1)
	ADDQ $32, DX
	SUBQ $8, CX
	JMP narrow

rest:
	TESTQ CX, CX
	JEQ next
	VXORPS Y0, Y0, Y0
	MOVQ R8, BX
	MOVQ R9, AX

restSource:
	MOVQ sourceFloat32_x(BX), SI
	ADDQ R13, SI
	VBROADCASTSS sourceFloat32_w(BX), Y4
	VMASKMOVPS (SI)(DX*1), Y13, Y1
	VFMADD231PS Y1, Y4, Y0
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ restSource
	VMASKMOVPS Y0, Y13, (DI)(DX*1)

next:
	ADDQ R11, DI
	ADDQ R12, R13
	DECQ R10
	JNZ pixel
	VZEROUPPER
	RET

// From lanes+32−4n on, n words of ones, then zeros: the mask of n lanes.
DATA ·lanes+0(SB)/8, $0xffffffffffffffff
DATA ·lanes+8(SB)/8, $0xffffffffffffffff
DATA ·lanes+16(SB)/8, $0xffffffffffffffff
DATA ·lanes+24(SB)/8, $0xffffffffffffffff
GLOBL ·lanes(SB), RODATA|NOPTR, $64
