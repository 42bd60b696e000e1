// The logarithm of eight float32 (AVX2, FMA), in place, as in exp_avx2_amd64.h. With x = m·2ᵏ, m in [√½, √2), and
// f = m − 1,
//
//	ln x = f − f²/2 + f³·q(f) + k·ln 2
//
// where q has the coefficients of Cephes' logf.

DATA logf<>+0(SB)/4, $0x00800000 // the least normal number
DATA logf<>+4(SB)/4, $0x4c000000 // 2²⁵
DATA logf<>+8(SB)/4, $0xc1c80000 // −25
DATA logf<>+12(SB)/4, $0x004afb0d // the bits of 1 less those of √½
DATA logf<>+16(SB)/4, $0x3f3504f3 // √½
DATA logf<>+20(SB)/4, $0x0000007f // the exponent of 1
DATA logf<>+24(SB)/4, $0x007fffff // a mantissa
DATA logf<>+28(SB)/4, $0x3d9021bb // q, highest power first
DATA logf<>+32(SB)/4, $0xbdebd1b8
DATA logf<>+36(SB)/4, $0x3def251a
DATA logf<>+40(SB)/4, $0xbdfe5d4f
DATA logf<>+44(SB)/4, $0x3e11e9bf
DATA logf<>+48(SB)/4, $0xbe2aae50
DATA logf<>+52(SB)/4, $0x3e4cceac
DATA logf<>+56(SB)/4, $0xbe7ffffc
DATA logf<>+60(SB)/4, $0x3eaaaaaa
DATA logf<>+64(SB)/4, $0xb95e8083 // ln 2, less the next
DATA logf<>+68(SB)/4, $0x3f318000
DATA logf<>+72(SB)/4, $0x3f000000
DATA logf<>+76(SB)/4, $0x3f800000
DATA logf<>+80(SB)/4, $0x7f800000 // infinity
DATA logf<>+84(SB)/4, $0xff800000 // its negative
DATA logf<>+88(SB)/4, $0x7fc00000 // not a number
GLOBL logf<>(SB), RODATA|NOPTR, $92

#define L(i, Y) VBROADCASTSS logf<>+i(SB), Y

#define LOG(A) \
	VXORPS Y14, Y14, Y14; \
	/* Y8 = x, or 2²⁵·x if that is less than any normal number; Y9 = 0 or −25 */ \
	L(0, Y12); \
	VCMPPS $1, Y12, A, Y13; \
	L(4, Y12); \
	VMULPS Y12, A, Y12; \
	VBLENDVPS Y13, Y12, A, Y8; \
	L(8, Y12); \
	VANDPS Y13, Y12, Y9; \
	/* Y8 = f, Y9 = k */ \
	L(12, Y12); \
	VPADDD Y12, Y8, Y8; \
	VPSRAD $23, Y8, Y10; \
	L(20, Y12); \
	VPSUBD Y12, Y10, Y10; \
	VCVTDQ2PS Y10, Y10; \
	VADDPS Y10, Y9, Y9; \
	L(24, Y12); \
	VPAND Y12, Y8, Y8; \
	L(16, Y12); \
	VPADDD Y12, Y8, Y8; \
	L(76, Y12); \
	VSUBPS Y12, Y8, Y8; \
	L(28, Y10); \
	L(32, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(36, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(40, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(44, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(48, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(52, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(56, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	L(60, Y12); \
	VFMADD213PS Y12, Y8, Y10; \
	VMULPS Y8, Y8, Y11; \
	VMULPS Y8, Y10, Y10; \
	VMULPS Y11, Y10, Y10; \
	L(64, Y12); \
	VFMADD231PS Y12, Y9, Y10; \
	L(72, Y12); \
	VFNMADD231PS Y12, Y11, Y10; \
	VADDPS Y8, Y10, Y10; \
	L(68, Y12); \
	VFMADD231PS Y12, Y9, Y10; \
	/* what is not positive and finite */ \
	L(80, Y12); \
	VCMPPS $0, Y12, A, Y13; \
	VBLENDVPS Y13, Y12, Y10, Y10; \
	L(84, Y12); \
	VCMPPS $0, Y14, A, Y13; \
	VBLENDVPS Y13, Y12, Y10, Y10; \
	L(88, Y12); \
	VCMPPS $9, Y14, A, Y13; \
	VBLENDVPS Y13, Y12, Y10, Y10; \
	VMOVAPS Y10, A
