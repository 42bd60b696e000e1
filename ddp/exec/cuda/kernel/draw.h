DEVICE void philox(u32 *c, u32 k0, u32 k1) {
	UNROLL
	for (int r = 0; r < 10; r++) {
		const u64 p0 = (u64)0xD2511F53u * c[0], p1 = (u64)0xCD9E8D57u * c[2];
		const u32 c1 = c[1], c3 = c[3];
		c[0] = (u32)(p1 >> 32) ^ c1 ^ k0;
		c[1] = (u32)p1;
		c[2] = (u32)(p0 >> 32) ^ c3 ^ k1;
		c[3] = (u32)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

DEVICE double uniform(u32 w) { return MULRN(ADDRN((double)(w >> 8), 0.5), 1.0 / 16777216); }

DEVICE double step(double s, double c, double z) { return ADDRN(MULRN(s, z), c); }

/* logarithm is ln u of a normal number: see package philox. */
DEVICE double logarithm(double u) {
	const u64 b = F64BITS(u);
	double k = (double)((int)(b >> 52) - 1022);
	double m = BITSF64((b & 0xfffffffffffffULL) | (u64)1022 << 52);
	if (m < 0.70710678118654757) {
		m = ADDRN(m, m);
		k = ADDRN(k, -1);
	}
	const double f = ADDRN(m, -1), s = DIVRN(f, ADDRN(f, 2)), s2 = MULRN(s, s), s4 = MULRN(s2, s2);
	double t1 = step(1.479819860511658591e-01, 1.818357216161805012e-01, s4);
	t1 = step(t1, 2.857142874366239149e-01, s4);
	t1 = step(t1, 6.666666666666735130e-01, s4);
	double t2 = step(1.531383769920937332e-01, 2.222219843214978396e-01, s4);
	t2 = step(t2, 3.999999999940941908e-01, s4);
	const double sum = ADDRN(MULRN(t1, s2), MULRN(t2, s4));
	const double half = MULRN(MULRN(f, 0.5), f);
	const double low = ADDRN(MULRN(ADDRN(half, sum), s), MULRN(k, 1.90821492927058770002e-10));
	return ADDRN(MULRN(k, 6.93147180369123816490e-01), -ADDRN(ADDRN(half, -low), -f));
}

DEVICE double flip(double x, u64 q) { return BITSF64(F64BITS(x) ^ (q & 2) << 62); }

/* boxMuller is two normals of two words. */
DEVICE void boxMuller(u32 w0, u32 w1, double *out) {
	const double r = SQRTRN(MULRN(-2, logarithm(uniform(w0))));
	const double round = 6755399441055744.0; /* 3 << 51 */
	const double t = MULRN(4, uniform(w1)), near = ADDRN(t, round);
	const double x = MULRN(ADDRN(t, -ADDRN(near, -round)), 1.5707963267948966), z = MULRN(x, x);
	double s = step(1.58962301576546568060e-10, -2.50507477628578072866e-8, z);
	s = step(s, 2.75573136213857245213e-6, z);
	s = step(s, -1.98412698295895385996e-4, z);
	s = step(s, 8.33333333332211858878e-3, z);
	s = step(s, -1.66666666666666307295e-1, z);
	s = ADDRN(MULRN(MULRN(s, z), x), x);
	double c = step(-1.13585365213876817300e-11, 2.08757008419747316778e-9, z);
	c = step(c, -2.75573141792967388112e-7, z);
	c = step(c, 2.48015872888517045348e-5, z);
	c = step(c, -1.38888888888730564116e-3, z);
	c = step(c, 4.16666666666665929218e-2, z);
	c = ADDRN(MULRN(MULRN(c, z), z), ADDRN(1, -MULRN(z, 0.5)));
	const u64 q = F64BITS(near);
	const double cosine = q & 1 ? s : c, sine = q & 1 ? c : s;
	out[0] = MULRN(r, flip(cosine, q + 1));
	out[1] = MULRN(r, flip(sine, q));
}
