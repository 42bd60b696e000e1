//go:build !noasm

#include "textflag.h"

// FTZ (0x8000) makes a subnormal result zero, DAZ (0x40) a subnormal operand.
#define FLUSH 0x8040

// func FlushSubnormals()
TEXT ·FlushSubnormals(SB), NOSPLIT, $8-0
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	ORL     $FLUSH, AX
	MOVL    AX, 0(SP)
	LDMXCSR 0(SP)
	RET

// func Flushes() bool
TEXT ·Flushes(SB), NOSPLIT, $8-1
	STMXCSR 0(SP)
	MOVL    0(SP), AX
	ANDL    $FLUSH, AX
	CMPL    AX, $FLUSH
	SETEQ   ret+0(FP)
	RET
