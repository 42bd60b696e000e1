// Elements, and what is reduced of them.
#include "nccl.h"

size_t width(int dtype) {
	switch (dtype) {
	case I8: case U8: return 1;
	case F16: case BF16: return 2;
	case I32: case U32: case F32: return 4;
	}
	return 8;
}

static float wide(uint16_t h) { uint32_t u = (uint32_t)h << 16; float f; memcpy(&f, &u, 4); return f; }
static uint16_t narrow(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	return f != f ? 0x7fc0 : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

#define EACH(T) do { \
	T *d = dst; const T *s = src; \
	for (size_t i = 0; i < n; i++) \
		d[i] = op == MAX ? (s[i] > d[i] ? s[i] : d[i]) : op == MIN ? (s[i] < d[i] ? s[i] : d[i]) : op == PROD ? (T)(d[i] * s[i]) : (T)(d[i] + s[i]); \
} while (0)

void combine(int dtype, int op, void *dst, const void *src, size_t n) {
	switch (dtype) {
	case U8: EACH(uint8_t); break;
	case I32: EACH(int32_t); break;
	case I64: EACH(int64_t); break;
	case F32: EACH(float); break;
	case F64: EACH(double); break;
	case BF16: {
		uint16_t *d = dst;
		const uint16_t *s = src;
		for (size_t i = 0; i < n; i++) { // rounded at every step, as there
			float a = wide(d[i]), b = wide(s[i]);
			d[i] = narrow(op == MAX ? (b > a ? b : a) : op == MIN ? (b < a ? b : a) : a + b);
		}
		break;
	}
	default: die("an element type that the double does not have");
	}
}

void premultiply(int dtype, void *p, size_t n, int by) {
	for (size_t i = 0; i < n; i++)
		switch (dtype) {
		case F32: ((float *)p)[i] *= 1.f / by; break;
		case F64: ((double *)p)[i] *= 1. / by; break;
		case BF16: ((uint16_t *)p)[i] = narrow(wide(((uint16_t *)p)[i]) * wide(narrow(1.f / by))); break;
		}
}
