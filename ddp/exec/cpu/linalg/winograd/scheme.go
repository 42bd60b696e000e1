package winograd

// scheme is the minimal algorithm F(m×m, r×r): m×m results of a correlation
// with r×r taps by n×n products, n = m+r-1. Its n points are ±a, ±b, infinity
// and, if n is even, 0.
type scheme struct {
	m, r, n int
	a, b    float64

	input  linear // Bᵀ: n → n, of an image's tiles
	output linear // Aᵀ: n → m, to results
	spread linear // A:  m → n, of a gradient's tiles
	filter linear // G:  r → n, of taps
	gather linear // Gᵀ: n → r, to the gradient of taps

	*isa // that all this runs on
}

func (s *scheme) points() int { return s.n * s.n }

// width is the columns of a panel.
func (s *scheme) width() int { return s.kernel.NR }

// newF43 is F(4×4, 3×3): 36 products for 144.
func newF43(i *isa) *scheme {
	s := &scheme{m: 4, r: 3, n: 6, a: 0.625, b: 1.5, isa: i}
	a2, b2 := s.a*s.a, s.b*s.b
	s.bind(i.six, 1/(a2*b2), 1/(2*a2*(a2-b2)), 1/(2*b2*(b2-a2)))
	return s
}

// newF42 is F(4×4, 2×2): 25 products for 64.
func newF42(i *isa) *scheme {
	s := &scheme{m: 4, r: 2, n: 5, a: 0.5, b: 1.25, isa: i}
	a2, b2 := s.a*s.a, s.b*s.b
	s.bind(i.five, 0, 1/(2*s.a*(a2-b2)), 1/(2*s.b*(b2-a2)))
	return s
}

// bind makes the maps; n0, na, nb are 1/N(x), N(x) = Π (x - other points).
func (s *scheme) bind(l loops, n0, na, nb float64) {
	a, b := s.a, s.b
	in := newConstants(a, b, a*a, b*b, a*a+b*b, a*a*b*b)
	out := newConstants(a, b, a*a, b*b, a*a*a, b*b*b)
	taps := newConstants(n0, na, nb, a, b, a*a, b*b)
	s.input = linear{s.n, s.n, in, l.input}
	s.output = linear{s.m, s.n, out, l.output}
	s.spread = linear{s.n, s.m, out, l.spread}
	s.filter = linear{s.n, s.r, taps, l.filter}
	s.gather = linear{s.r, s.n, taps, l.gather}
}

func newConstants(v ...float64) *constants {
	var c constants
	for i, x := range v {
		for j := range c[i] {
			c[i][j] = float32(x)
		}
	}
	return &c
}
