//go:build !noasm

#include "textflag.h"

// FTZ (0x8000) makes a subnormal result zero, DAZ (0x40) a subnormal operand.
#define FLUSH 0x8040

// func set(zeros bool)
TEXT ·set(SB), NOSPLIT, $8-1
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	ANDL    $~FLUSH, AX
	MOVBLZX zeros+0(FP), CX
	NEGL    CX
	ANDL    $FLUSH, CX
	ORL     CX, AX
	MOVL    AX, 0(SP)
	LDMXCSR 0(SP)
	RET

// func Zeros() bool
TEXT ·Zeros(SB), NOSPLIT, $8-1
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	ANDL    $FLUSH, AX
	CMPL    AX, $FLUSH
	SETEQ   ret+0(FP)
	RET
