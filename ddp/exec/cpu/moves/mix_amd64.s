//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// func mix16(d *float32, from *sourceFloat32, sources, n int)
// d[i] = Σ w·x[i] over the sources, in their order, one rounding each (AVX-512);
// n is a multiple of 16, sources and n are not 0.
TEXT ·mix16(SB), NOSPLIT, $0-32
	MOVQ d+0(FP), DI
	MOVQ from+8(FP), R8
	MOVQ sources+16(FP), R9
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
	TESTQ CX, CX
	JEQ done
	VPXORD Z0, Z0, Z0
	MOVQ R8, BX
	MOVQ R9, AX

narrowSource:
	MOVQ sourceFloat32_x(BX), SI
	VBROADCASTSS sourceFloat32_w(BX), Z4
	VFMADD231PS (SI)(DX*1), Z4, Z0
	ADDQ $sourceFloat32__size, BX
	DECQ AX
	JNZ narrowSource
	VMOVUPS Z0, (DI)(DX*1)
	ADDQ $64, DX
	SUBQ $16, CX
	JMP narrow

done:
	VZEROUPPER
	RET

// func axpy8(d, x *float32, s float32, n int)
// d[i] += s·x[i], one rounding (AVX2, FMA); n is a multiple of 8 and not 0.
TEXT ·axpy8(SB), NOSPLIT, $0-32
	MOVQ d+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS s+16(FP), Y2
	MOVQ n+24(FP), CX

loop:
	VMOVUPS (SI), Y1
	VFMADD213PS (DI), Y2, Y1
	VMOVUPS Y1, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
