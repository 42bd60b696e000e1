// The logarithm of eight float32 (AVX2, FMA). With x = m·2ᵏ, m in [√½, √2), and
// f = m − 1,
//
//	ln x = f − f²/2 + f³·q(f) + k·ln 2
//
// where q has the coefficients of Cephes' logf.

DATA ·logf+0(SB)/4, $0x00800000 // the least normal number
DATA ·logf+4(SB)/4, $0x4c000000 // 2²⁵
DATA ·logf+8(SB)/4, $0xc1c80000 // −25
DATA ·logf+12(SB)/4, $0x004afb0d // the bits of 1 less those of √½
DATA ·logf+16(SB)/4, $0x3f3504f3 // √½
DATA ·logf+20(SB)/4, $0x0000007f // the exponent of 1
DATA ·logf+24(SB)/4, $0x007fffff // a mantissa
DATA ·logf+28(SB)/4, $0x3d9021bb // q, highest power first
DATA ·logf+32(SB)/4, $0xbdebd1b8
DATA ·logf+36(SB)/4, $0x3def251a
DATA ·logf+40(SB)/4, $0xbdfe5d4f
DATA ·logf+44(SB)/4, $0x3e11e9bf
DATA ·logf+48(SB)/4, $0xbe2aae50
DATA ·logf+52(SB)/4, $0x3e4cceac
DATA ·logf+56(SB)/4, $0xbe7ffffc
DATA ·logf+60(SB)/4, $0x3eaaaaaa
DATA ·logf+64(SB)/4, $0xb95e8083 // ln 2, less the next
DATA ·logf+68(SB)/4, $0x3f318000
DATA ·logf+72(SB)/4, $0x3f000000
DATA ·logf+76(SB)/4, $0x3f800000
DATA ·logf+80(SB)/4, $0x7f800000 // infinity
DATA ·logf+84(SB)/4, $0xff800000 // its negative
DATA ·logf+88(SB)/4, $0x7fc00000 // not a number
GLOBL ·logf(SB), RODATA|NOPTR, $92

#define L(i, Y) VBROADCASTSS ·logf+i(SB), Y

// Y0 = log Y1; Y5 = 0.
#define LOG \
	/* Y7 = x, or 2²⁵·x if that is less than any normal number; Y8 = 0 or −25 */ \
	L(0, Y9); \
	VCMPPS $1, Y9, Y1, Y6; \
	L(4, Y9); \
	VMULPS Y9, Y1, Y9; \
	VBLENDVPS Y6, Y9, Y1, Y7; \
	L(8, Y9); \
	VANDPS Y6, Y9, Y8; \
	/* Y7 = f, Y8 = k */ \
	L(12, Y9); \
	VPADDD Y9, Y7, Y7; \
	VPSRAD $23, Y7, Y10; \
	L(20, Y9); \
	VPSUBD Y9, Y10, Y10; \
	VCVTDQ2PS Y10, Y10; \
	VADDPS Y10, Y8, Y8; \
	L(24, Y9); \
	VPAND Y9, Y7, Y7; \
	L(16, Y9); \
	VPADDD Y9, Y7, Y7; \
	L(76, Y9); \
	VSUBPS Y9, Y7, Y7; \
	L(28, Y10); \
	L(32, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(36, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(40, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(44, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(48, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(52, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(56, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	L(60, Y9); \
	VFMADD213PS Y9, Y7, Y10; \
	VMULPS Y7, Y7, Y11; \
	VMULPS Y7, Y10, Y10; \
	VMULPS Y11, Y10, Y10; \
	L(64, Y9); \
	VFMADD231PS Y9, Y8, Y10; \
	L(72, Y9); \
	VFNMADD231PS Y9, Y11, Y10; \
	VADDPS Y7, Y10, Y10; \
	L(68, Y9); \
	VFMADD231PS Y9, Y8, Y10; \
	/* what is not positive and finite */ \
	L(80, Y9); \
	VCMPPS $0, Y9, Y1, Y6; \
	VBLENDVPS Y6, Y9, Y10, Y10; \
	L(84, Y9); \
	VCMPPS $0, Y5, Y1, Y6; \
	VBLENDVPS Y6, Y9, Y10, Y10; \
	L(88, Y9); \
	VCMPPS $9, Y5, Y1, Y6; \
	VBLENDVPS Y6, Y9, Y10, Y10; \
	VMOVAPS Y10, Y0
