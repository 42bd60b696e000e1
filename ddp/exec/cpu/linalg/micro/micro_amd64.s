//go:build !noasm

#include "textflag.h"

#define ZERO512(lo, hi) \
	VPXORD lo, lo, lo \
	VPXORD hi, hi, hi

// SET512 stores row r and leaves if it was the last; ADD512 adds it.
#define SET512(r, lo, hi) \
	MOVQ    (8*r)(SI), R13 \
	LEAQ    (DX)(R13*4), R13 \
	VMOVUPS lo, K1, (R13) \
	VMOVUPS hi, K2, 64(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

#define ADD512(r, lo, hi) \
	MOVQ    (8*r)(SI), R13 \
	LEAQ    (DX)(R13*4), R13 \
	VADDPS  (R13), lo, K1, lo \
	VADDPS  64(R13), hi, K2, hi \
	VMOVUPS lo, K1, (R13) \
	VMOVUPS hi, K2, 64(R13) \
	CMPQ    R12, $(r+1) \
	JE      done

// SUMS12 is the beginning of a kernel of 12 × 32: its sums, in (Z(2r), Z(2r+1)) for
// row r, by a macro for one row at one k. R8 … R11 point at rows 0, 3, 6, 9 of a
// at the current k; AX and BX are the strides in bytes.
#define SUMS12(ROW) \
	MOVQ k+0(FP), CX \
	MOVQ a+8(FP), R8 \
	MOVQ rs+16(FP), AX \
	MOVQ ks+24(FP), BX \
	MOVQ b+32(FP), DI \
	SHLQ $2, AX \
	SHLQ $2, BX \
	LEAQ (AX)(AX*2), R13 \
	LEAQ (R8)(R13*1), R9 \
	LEAQ (R9)(R13*1), R10 \
	LEAQ (R10)(R13*1), R11 \
	ZERO512(Z0, Z1) \
	ZERO512(Z2, Z3) \
	ZERO512(Z4, Z5) \
	ZERO512(Z6, Z7) \
	ZERO512(Z8, Z9) \
	ZERO512(Z10, Z11) \
	ZERO512(Z12, Z13) \
	ZERO512(Z14, Z15) \
	ZERO512(Z16, Z17) \
	ZERO512(Z18, Z19) \
	ZERO512(Z20, Z21) \
	ZERO512(Z22, Z23) \
loop: \
	VMOVUPS (DI), Z24 \
	VMOVUPS 64(DI), Z25 \
	ROW((R8), Z26, Z0, Z1) \
	ROW((R8)(AX*1), Z27, Z2, Z3) \
	ROW((R8)(AX*2), Z28, Z4, Z5) \
	ROW((R9), Z29, Z6, Z7) \
	ROW((R9)(AX*1), Z30, Z8, Z9) \
	ROW((R9)(AX*2), Z31, Z10, Z11) \
	ROW((R10), Z26, Z12, Z13) \
	ROW((R10)(AX*1), Z27, Z14, Z15) \
	ROW((R10)(AX*2), Z28, Z16, Z17) \
	ROW((R11), Z29, Z18, Z19) \
	ROW((R11)(AX*1), Z30, Z20, Z21) \
	ROW((R11)(AX*2), Z31, Z22, Z23) \
	ADDQ BX, R8 \
	ADDQ BX, R9 \
	ADDQ BX, R10 \
	ADDQ BX, R11 \
	ADDQ $128, DI \
	DECQ CX \
	JNZ  loop

// EACH12 does something with each row and its sums.
#define EACH12(DO) \
	DO(0, Z0, Z1) \
	DO(1, Z2, Z3) \
	DO(2, Z4, Z5) \
	DO(3, Z6, Z7) \
	DO(4, Z8, Z9) \
	DO(5, Z10, Z11) \
	DO(6, Z12, Z13) \
	DO(7, Z14, Z15) \
	DO(8, Z16, Z17) \
	DO(9, Z18, Z19) \
	DO(10, Z20, Z21) \
	DO(11, Z22, Z23)

// ROWVNNI is one row of a micro-tile at one k: lo, hi += a·(Z24, Z25), on pairs of 16-bit
// integers.
#define ROWVNNI(a, x, lo, hi) \
	VPBROADCASTD a, x \
	VPDPWSSD     Z24, x, lo \
	VPDPWSSD     Z25, x, hi

// SCALE makes row r of sums float32, times its scale and those of the columns,
// (Z24, Z25).
#define SCALE(r, lo, hi) \
	VCVTDQ2PS lo, lo \
	VCVTDQ2PS hi, hi \
	VMULPS Z24, lo, lo \
	VMULPS Z25, hi, hi \
	VMULPS.BCST (4*r)(R8), lo, lo \
	VMULPS.BCST (4*r)(R8), hi, hi

#define SETSCALED(r, lo, hi) \
	SCALE(r, lo, hi) \
	SET512(r, lo, hi)

#define ADDSCALED(r, lo, hi) \
	SCALE(r, lo, hi) \
	ADD512(r, lo, hi)

// func int16Kernel12x32(k int, a *uint32, rs, ks int, b *uint32, c *float32, off *[MaxMR]int, sa, sb *float32, rows int, mask uint32, add bool)
TEXT ·int16Kernel12x32(SB), NOSPLIT, $0-85
	SUMS12(ROWVNNI)
	MOVQ    c+40(FP), DX
	MOVQ    off+48(FP), SI
	MOVQ    sa+56(FP), R8
	MOVQ    sb+64(FP), R9
	MOVQ    rows+72(FP), R12
	MOVL    mask+80(FP), AX
	KMOVW   AX, K1
	SHRL    $16, AX
	KMOVW   AX, K2
	VMOVUPS (R9), Z24
	VMOVUPS 64(R9), Z25
	CMPB    add+84(FP), $0
	JNE     sum
	EACH12(SETSCALED)
	JMP     done

sum:
	EACH12(ADDSCALED)

done:
	VZEROUPPER
	RET
