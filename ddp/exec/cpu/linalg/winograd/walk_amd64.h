// The walk of a 1-D transform over blocks and columns: see type pass. What is done
// at each column is in maps5_amd64.h and maps6_amd64.h, as macros over registers
// V0 … V11 and constants C0 … C6, in registers or in memory: the file that
// includes all three says what those are. Where a register holds half of the 16
// channels of a vector, a map is applied twice, at offset o = 0 and 32.
//
// R15 is the pass, R9 its constants, DI and SI the offset of dst and src at the
// current block, R12 and R13 those at the current column, R8, R10, R11 the
// strides dstPoint, dstCol, srcCol.

#define BEGIN \
	MOVQ p+0(FP), R15 \
	MOVQ pass_dst(R15), DI \
	XORQ SI, SI \
	MOVQ pass_dstPoint(R15), R8 \
	MOVQ pass_dstCol(R15), R10 \
	MOVQ pass_srcCol(R15), R11 \
	MOVQ pass_vectors(R15), DX \
	MOVQ pass_consts(R15), R9

#define BLOCK \
	MOVQ DI, R12 \
	MOVQ SI, R13 \
	MOVQ pass_cols(R15), CX

#define LOAD(o, i, v) \
	MOVQ (pass_src+8*i)(R15), AX \
	VMOVUPS o(AX)(R13*1), v

#define FIRST(o, v) \
	MOVQ R12, BX \
	VMOVUPS v, o(BX)

#define NEXT(o, v) \
	ADDQ R8, BX \
	VMOVUPS v, o(BX)

#define END \
	ADDQ R10, R12 \
	ADDQ R11, R13 \
	DECQ CX \
	JNZ  column \
	ADDQ pass_dstVector(R15), DI \
	ADDQ pass_srcVector(R15), SI \
	DECQ DX \
	JNZ  block \
	VZEROUPPER \
	RET
