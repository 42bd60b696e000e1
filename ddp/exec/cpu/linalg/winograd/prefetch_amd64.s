//go:build !noasm

#include "textflag.h"

// func prefetch(p uintptr, rows, cols, down, across, bytes int)
//
// A prefetch never faults, whatever the address.
TEXT ·prefetch(SB), NOSPLIT, $0-48
	MOVQ p+0(FP), SI
	MOVQ rows+8(FP), R11
	MOVQ cols+16(FP), CX
	MOVQ down+24(FP), R8
	MOVQ across+32(FP), R9
	MOVQ bytes+40(FP), R10

row:
	MOVQ SI, DI
	MOVQ CX, DX

column:
	MOVQ R10, BX

line:
	SUBQ        $64, BX
	PREFETCHT0  (DI)(BX*1)
	JNZ         line
	ADDQ        R9, DI
	DECQ        DX
	JNZ         column
	ADDQ        R8, SI
	DECQ        R11
	JNZ         row
	RET
