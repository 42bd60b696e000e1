// EACH8(BODY) computes Y0 from Y1 with BODY for the n numbers from SI on, eight at
// a time, and stores them from DI on; n, in CX, is not 0. What is left of n lies in
// the first lanes of a vector whose others are 0 and are not stored. BODY leaves
// Y13, AX, CX, DX, SI and DI alone.
#define EACH8(BODY) \
loop: \
	CMPQ CX, $8; \
	JLT  rest; \
	VMOVUPS (SI), Y1; \
body: \
	BODY; \
	CMPQ CX, $8; \
	JLT  last; \
	VMOVUPS Y0, (DI); \
	ADDQ $32, SI; \
	ADDQ $32, DI; \
	SUBQ $8, CX; \
	JNZ  loop; \
	VZEROUPPER; \
	RET; \
rest: \
	LEAQ ·lanes+32(SB), AX; \
	MOVQ CX, DX; \
	SHLQ $2, DX; \
	SUBQ DX, AX; \
	VMOVUPS (AX), Y13; \
	VMASKMOVPS (SI), Y13, Y1; \
	JMP  body; \
last: \
	VMASKMOVPS Y0, Y13, (DI); \
	VZEROUPPER; \
	RET
