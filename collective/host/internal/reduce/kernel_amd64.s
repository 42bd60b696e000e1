//go:build amd64 && !noasm

#include "textflag.h"

// func add2F32(dst, a, b *float32, n int)
TEXT ·add2F32(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX

loop: // dst[i] = a[i] + b[i], 32 elements
	VMOVUPS 0(SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VADDPS  0(DX), Y0, Y0
	VADDPS  32(DX), Y1, Y1
	VADDPS  64(DX), Y2, Y2
	VADDPS  96(DX), Y3, Y3
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, DI
	SUBQ    $32, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add3F32(dst, a, b, c *float32, n int)
TEXT ·add3F32(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ n+32(FP), CX

loop: // dst[i] = (a[i] + b[i]) + c[i], 32 elements
	VMOVUPS 0(SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VADDPS  0(DX), Y0, Y0
	VADDPS  32(DX), Y1, Y1
	VADDPS  64(DX), Y2, Y2
	VADDPS  96(DX), Y3, Y3
	VADDPS  0(R8), Y0, Y0
	VADDPS  32(R8), Y1, Y1
	VADDPS  64(R8), Y2, Y2
	VADDPS  96(R8), Y3, Y3
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, R8
	ADDQ    $128, DI
	SUBQ    $32, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add4F32(dst, a, b, c, d *float32, n int)
TEXT ·add4F32(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ d+32(FP), R9
	MOVQ n+40(FP), CX

loop: // dst[i] = (a[i] + b[i]) + (c[i] + d[i]), 32 elements
	VMOVUPS 0(SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS 64(SI), Y2
	VMOVUPS 96(SI), Y3
	VMOVUPS 0(R8), Y4
	VMOVUPS 32(R8), Y5
	VMOVUPS 64(R8), Y6
	VMOVUPS 96(R8), Y7
	VADDPS  0(DX), Y0, Y0
	VADDPS  32(DX), Y1, Y1
	VADDPS  64(DX), Y2, Y2
	VADDPS  96(DX), Y3, Y3
	VADDPS  0(R9), Y4, Y4
	VADDPS  32(R9), Y5, Y5
	VADDPS  64(R9), Y6, Y6
	VADDPS  96(R9), Y7, Y7
	VADDPS  Y4, Y0, Y0
	VADDPS  Y5, Y1, Y1
	VADDPS  Y6, Y2, Y2
	VADDPS  Y7, Y3, Y3
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, R8
	ADDQ    $128, R9
	ADDQ    $128, DI
	SUBQ    $32, CX
	JNZ     loop
	VZEROUPPER
	RET

// func scaleF32(x *float32, n int, r float32)
TEXT ·scaleF32(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS r+16(FP), Y4

loop: // x[i] *= r, 32 elements
	VMULPS  0(DI), Y4, Y0
	VMULPS  32(DI), Y4, Y1
	VMULPS  64(DI), Y4, Y2
	VMULPS  96(DI), Y4, Y3
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ    $128, DI
	SUBQ    $32, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add2F64(dst, a, b *float64, n int)
TEXT ·add2F64(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX

loop: // dst[i] = a[i] + b[i], 16 elements
	VMOVUPD 0(SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	VADDPD  0(DX), Y0, Y0
	VADDPD  32(DX), Y1, Y1
	VADDPD  64(DX), Y2, Y2
	VADDPD  96(DX), Y3, Y3
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add3F64(dst, a, b, c *float64, n int)
TEXT ·add3F64(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ n+32(FP), CX

loop: // dst[i] = (a[i] + b[i]) + c[i], 16 elements
	VMOVUPD 0(SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	VADDPD  0(DX), Y0, Y0
	VADDPD  32(DX), Y1, Y1
	VADDPD  64(DX), Y2, Y2
	VADDPD  96(DX), Y3, Y3
	VADDPD  0(R8), Y0, Y0
	VADDPD  32(R8), Y1, Y1
	VADDPD  64(R8), Y2, Y2
	VADDPD  96(R8), Y3, Y3
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, R8
	ADDQ    $128, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// func add4F64(dst, a, b, c, d *float64, n int)
TEXT ·add4F64(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ d+32(FP), R9
	MOVQ n+40(FP), CX

loop: // dst[i] = (a[i] + b[i]) + (c[i] + d[i]), 16 elements
	VMOVUPD 0(SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	VMOVUPD 0(R8), Y4
	VMOVUPD 32(R8), Y5
	VMOVUPD 64(R8), Y6
	VMOVUPD 96(R8), Y7
	VADDPD  0(DX), Y0, Y0
	VADDPD  32(DX), Y1, Y1
	VADDPD  64(DX), Y2, Y2
	VADDPD  96(DX), Y3, Y3
	VADDPD  0(R9), Y4, Y4
	VADDPD  32(R9), Y5, Y5
	VADDPD  64(R9), Y6, Y6
	VADDPD  96(R9), Y7, Y7
	VADDPD  Y4, Y0, Y0
	VADDPD  Y5, Y1, Y1
	VADDPD  Y6, Y2, Y2
	VADDPD  Y7, Y3, Y3
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DX
	ADDQ    $128, R8
	ADDQ    $128, R9
	ADDQ    $128, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET

// func scaleF64(x *float64, n int, r float64)
TEXT ·scaleF64(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSD r+16(FP), Y4

loop: // x[i] *= r, 16 elements
	VMULPD  0(DI), Y4, Y0
	VMULPD  32(DI), Y4, Y1
	VMULPD  64(DI), Y4, Y2
	VMULPD  96(DI), Y4, Y3
	VMOVUPD Y0, 0(DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, DI
	SUBQ    $16, CX
	JNZ     loop
	VZEROUPPER
	RET
