// The threading of the code, in every instruction set: R8 is the instruction (linked), R9
// the first one, R12 the counters.

#define NEXT \
	ADDQ $linked__size, R8; \
	MOVQ linked_handler(R8), AX; \
	JMP AX

#define FIRST \
	MOVQ R9, R8; \
	MOVQ linked_handler(R8), AX; \
	JMP AX

// SI = the operand's address
#define OPERAND \
	MOVQ linked_counter(R8), SI; \
	MOVQ (R12)(SI*8), SI; \
	ADDQ linked_operand(R8), SI
