package philox

import "math"

// BoxMuller turns two words into two independent standard normals:
// r = √(−2 ln u₀), (r cos 2πu₁, r sin 2πu₁), each right to some units in the last
// place.
//
// Every operation is rounded by itself: the conversions around products keep
// compilers from fusing them with sums. So the bits are the same on every
// processor, and in the assembly, which does the same operations, or others where
// both are exact.
func BoxMuller(w0, w1 uint32) (float64, float64) {
	r := math.Sqrt(-2 * logarithm(Float64(w0)))
	c, s := turn(Float64(w1))
	return r * c, r * s
}

// logarithm is ln u of a normal number, as in FreeBSD's e_log.c: u = m·2ᵏ with m in
// [√½, √2), and a polynomial in s = f/(2+f), f = m-1.
func logarithm(u float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	bits := math.Float64bits(u)
	k := float64(int(bits>>52) - 1022)
	m := math.Float64frombits(bits&(1<<52-1) | 1022<<52)
	if m < math.Sqrt2/2 {
		m, k = m+m, k-1
	}
	f := m - 1
	s := f / (f + 2)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(l7*s4) + l5
	t1 = float64(t1*s4) + l3
	t1 = float64(t1*s4) + l1
	t2 := float64(l6*s4) + l4
	t2 = float64(t2*s4) + l2
	sum := float64(t1*s2) + float64(t2*s4)
	half := float64(float64(f*0.5) * f)
	low := float64((half+sum)*s) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - low) - f)
}

// turn is the cosine and sine of v turns, 0 < v < 1: those of the angle to the next
// quarter, at most an eighth, by the polynomials of Cephes.
func turn(v float64) (cos, sin float64) {
	const (
		round = 3 << 51 // added to a small number, it leaves the nearest integer in the last bits
		s0    = 1.58962301576546568060e-10
		s1    = -2.50507477628578072866e-8
		s2    = 2.75573136213857245213e-6
		s3    = -1.98412698295895385996e-4
		s4    = 8.33333333332211858878e-3
		s5    = -1.66666666666666307295e-1
		c0    = -1.13585365213876817300e-11
		c1    = 2.08757008419747316778e-9
		c2    = -2.75573141792967388112e-7
		c3    = 2.48015872888517045348e-5
		c4    = -1.38888888888730564116e-3
		c5    = 4.16666666666665929218e-2
	)
	t := 4 * v
	near := t + round
	x := float64((t - (near - round)) * (math.Pi / 2))
	z := float64(x * x)
	s := float64(s0*z) + s1
	s = float64(s*z) + s2
	s = float64(s*z) + s3
	s = float64(s*z) + s4
	s = float64(s*z) + s5
	s = float64(float64(s*z)*x) + x
	c := float64(c0*z) + c1
	c = float64(c*z) + c2
	c = float64(c*z) + c3
	c = float64(c*z) + c4
	c = float64(c*z) + c5
	c = float64(float64(c*z)*z) + (1 - float64(z*0.5))
	q := math.Float64bits(near)
	if q&1 != 0 {
		c, s = s, c
	}
	return flip(c, q+1), flip(s, q)
}

// flip is x, or -x if bit 1 of q is set.
func flip(x float64, q uint64) float64 {
	return math.Float64frombits(math.Float64bits(x) ^ q&2<<62)
}

// Normal fills dst with elements 0, 1, … of the stream, standard normal by
// Box and Muller: words (0, 1) of a block make elements 0 and 1, words (2, 3)
// elements 2 and 3.
func (n Name) Normal(dst []float64) { n.NormalFrom(dst, 0) }

// NormalFrom fills dst with elements 4·block, 4·block + 1, … of Normal.
func (n Name) NormalFrom(dst []float64, block uint32) {
	if wide != plain {
		dst, block = n.wideNormal(dst, block)
	}
	for i := 0; i < len(dst); i, block = i+4, block+1 {
		b := n.Block(block)
		z0, z1 := BoxMuller(b[0], b[1])
		z2, z3 := BoxMuller(b[2], b[3])
		if d := dst[i:]; len(d) >= 4 {
			d[0], d[1], d[2], d[3] = z0, z1, z2, z3
		} else {
			copy(d, []float64{z0, z1, z2, z3})
		}
	}
}

// Uniform fills dst with elements 0, 1, … of the stream, uniform in (0, 1).
func (n Name) Uniform(dst []float64) { n.UniformFrom(dst, 0) }

// UniformFrom fills dst with elements 4·block, 4·block + 1, … of Uniform.
func (n Name) UniformFrom(dst []float64, block uint32) {
	if wide != plain {
		dst, block = n.wideUniform(dst, block)
	}
	for i := 0; i < len(dst); i, block = i+4, block+1 {
		b := n.Block(block)
		for j := 0; j < 4 && i+j < len(dst); j++ {
			dst[i+j] = Float64(b[j])
		}
	}
}
