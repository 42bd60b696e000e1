// EACH8(BODY) computes BODY(Y0) of the n numbers from SI on, eight at a time, and
// stores them from DI on; n, in CX, is not 0. What is left of n lies in the first
// lanes of a vector whose others are 0 and are not stored. BODY leaves Y1, AX, CX,
// DX, SI and DI alone.
#define EACH8(BODY) \
loop: \
	CMPQ CX, $8; \
	JLT  rest; \
	VMOVUPS (SI), Y0; \
body: \
	BODY(Y0); \
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
	VMOVUPS (AX), Y1; \
	VMASKMOVPS (SI), Y1, Y0; \
	JMP  body; \
last: \
	VMASKMOVPS Y0, Y1, (DI); \
	VZEROUPPER; \
	RET
