// What the functions in AVX-512 and those in AVX2 have in common.

// CONSTANT is a number in four lanes of 64 bits, by its bits.
#define CONSTANT(name, bits) \
	DATA name<>+0(SB)/8, bits \
	DATA name<>+8(SB)/8, bits \
	DATA name<>+16(SB)/8, bits \
	DATA name<>+24(SB)/8, bits \
	GLOBL name<>(SB), RODATA|NOPTR, $32

// Constants of BoxMuller, see normal.go.
CONSTANT(half, $0x3fe0000000000000)
CONSTANT(one, $0x3ff0000000000000)
CONSTANT(two, $0x4000000000000000)
CONSTANT(minus2, $0xc000000000000000)
CONSTANT(root, $0x3fe6a09e667f3bcd)
CONSTANT(ln2Hi, $0x3fe62e42fee00000)
CONSTANT(ln2Lo, $0x3dea39ef35793c76)
CONSTANT(l1, $0x3fe5555555555593)
CONSTANT(l2, $0x3fd999999997fa04)
CONSTANT(l3, $0x3fd2492494229359)
CONSTANT(l4, $0x3fcc71c51d8e78af)
CONSTANT(l5, $0x3fc7466496cb03de)
CONSTANT(l6, $0x3fc39a09d078c69f)
CONSTANT(l7, $0x3fc2f112df3e5244)
CONSTANT(exact, $0x4330000000000000)
CONSTANT(quarter, $0x3ff921fb54442d18)
CONSTANT(s0, $0x3de5d8fd1fd19ccd)
CONSTANT(s1, $0xbe5ae5e5a9291f5d)
CONSTANT(s2, $0x3ec71de3567d48a1)
CONSTANT(s3, $0xbf2a01a019bfdf03)
CONSTANT(s4, $0x3f8111111110f7d0)
CONSTANT(s5, $0xbfc5555555555548)
CONSTANT(c0, $0xbda8fa49a0861a9b)
CONSTANT(c1, $0x3e21ee9d7b4e3f05)
CONSTANT(c2, $0xbe927e4f7eac4bc6)
CONSTANT(c3, $0x3efa01a019c844f5)
CONSTANT(c4, $0xbf56c16c16c14f91)
CONSTANT(c5, $0x3fa555555555554b)

// lane is the number of each of eight lanes.
DATA lane<>+0(SB)/8, $0
DATA lane<>+8(SB)/8, $1
DATA lane<>+16(SB)/8, $2
DATA lane<>+24(SB)/8, $3
DATA lane<>+32(SB)/8, $4
DATA lane<>+40(SB)/8, $5
DATA lane<>+48(SB)/8, $6
DATA lane<>+56(SB)/8, $7
GLOBL lane<>(SB), RODATA|NOPTR, $64

// WRITE writes element j of each of eight blocks, as a float32 in Y13, Y14, Y15 and
// Y11, in order, and goes on to the next 32 numbers.
#define WRITE \
	VUNPCKLPS Y14, Y13, Y0 \
	VUNPCKHPS Y14, Y13, Y1 \
	VUNPCKLPS Y11, Y15, Y2 \
	VUNPCKHPS Y11, Y15, Y3 \
	VUNPCKLPD Y2, Y0, Y6 \
	VUNPCKHPD Y2, Y0, Y7 \
	VUNPCKLPD Y3, Y1, Y10 \
	VUNPCKHPD Y3, Y1, Y11 \
	VMOVUPS X6, 0(DI) \
	VMOVUPS X7, 16(DI) \
	VMOVUPS X10, 32(DI) \
	VMOVUPS X11, 48(DI) \
	VEXTRACTF128 $1, Y6, 64(DI) \
	VEXTRACTF128 $1, Y7, 80(DI) \
	VEXTRACTF128 $1, Y10, 96(DI) \
	VEXTRACTF128 $1, Y11, 112(DI) \
	ADDQ $128, DI
