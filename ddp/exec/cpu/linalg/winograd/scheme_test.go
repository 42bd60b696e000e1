package winograd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestSchemes holds every map to its definition by the points of the scheme,
// and the definition to what it is for: correlations.
func TestSchemes(t *testing.T) { each(t, testSchemes) }

func testSchemes(t *testing.T, i *isa) {
	for name, s := range map[string]*scheme{"F(4,3)": newF43(i), "F(4,2)": newF42(i)} {
		at, g, bt := definition(s)
		checkCorrelation(t, name, s, at, g, bt)
		for what, c := range map[string]struct {
			l    *linear
			want [][]float64
		}{
			"input": {&s.input, bt}, "output": {&s.output, at}, "spread": {&s.spread, transposed(at)},
			"filter": {&s.filter, g}, "gather": {&s.gather, transposed(g)},
		} {
			for blocks := 1; blocks <= maxVectors; blocks++ {
				checkSquare(t, name+" "+what, c.l, c.want, blocks)
			}
		}
	}
}

// definition is Aᵀ, G and Bᵀ of a scheme (Toom and Cook): N and M as in scheme.
func definition(s *scheme) (at, g, bt [][]float64) {
	points := []float64{s.a, -s.a, s.b, -s.b}
	if s.n == 6 {
		points = append([]float64{0}, points...)
	}
	at, g, bt = matrix(s.m, s.n), matrix(s.n, s.r), matrix(s.n, s.n)
	for j, x := range points {
		norm, others := 1.0, []float64{1}
		for k, y := range points {
			if k != j {
				norm *= x - y
				others = timesRoot(others, y)
			}
		}
		for i := range s.m {
			at[i][j] = math.Pow(x, float64(i))
		}
		for i := range s.r {
			g[j][i] = math.Pow(x, float64(i)) / norm
		}
		copy(bt[j], others)
	}
	all := []float64{1}
	for _, y := range points {
		all = timesRoot(all, y)
	}
	at[s.m-1][s.n-1], g[s.n-1][s.r-1] = 1, 1
	copy(bt[s.n-1], all)
	return at, g, bt
}

// timesRoot is the polynomial p, lowest coefficient first, times (z - root).
func timesRoot(p []float64, root float64) []float64 {
	q := make([]float64, len(p)+1)
	for i, c := range p {
		q[i] -= root * c
		q[i+1] += c
	}
	return q
}

func matrix(rows, cols int) [][]float64 {
	m := make([][]float64, rows)
	for i := range m {
		m[i] = make([]float64, cols)
	}
	return m
}

func transposed(m [][]float64) [][]float64 {
	t := matrix(len(m[0]), len(m))
	for i := range m {
		for j, v := range m[i] {
			t[j][i] = v
		}
	}
	return t
}

func apply(m [][]float64, x []float64) []float64 {
	y := make([]float64, len(m))
	for i := range m {
		for j, v := range m[i] {
			y[i] += v * x[j]
		}
	}
	return y
}

// checkCorrelation: Aᵀ[(G w) ⊙ (Bᵀ x)] is the correlation of x and w.
func checkCorrelation(t *testing.T, name string, s *scheme, at, g, bt [][]float64) {
	x, w := make([]float64, s.n), make([]float64, s.r)
	for i := range x {
		x[i] = rand.NormFloat64()
	}
	for i := range w {
		w[i] = rand.NormFloat64()
	}
	u, v := apply(g, w), apply(bt, x)
	for i := range u {
		u[i] *= v[i]
	}
	for i, got := range apply(at, u) {
		want := 0.0
		for k := range w {
			want += x[i+k] * w[k]
		}
		if !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%s: result %d is %v, want %v", name, i, got, want)
		}
	}
}

// checkSquare holds l.square to M·x·Mᵀ, on columns [from,to) for all ranges.
func checkSquare(t *testing.T, name string, l *linear, m [][]float64, blocks int) {
	const gap = 3 // floats between vectors that belong to nobody
	for from := 0; from <= l.cols; from++ {
		for to := from; to <= l.cols; to++ {
			in := strides{down: (l.cols*maxVectors + 1) * (lanes + gap), across: maxVectors * (lanes + gap), vector: lanes + gap}
			out := strides{down: (l.rows*maxVectors + 2) * (lanes + gap), across: maxVectors * (lanes + gap), vector: lanes + gap}
			x, y := make([]float32, l.cols*in.down), make([]float32, l.rows*out.down)
			for i := range x {
				x[i] = float32(rand.NormFloat64())
			}
			var rows [6]unsafe.Pointer
			for i := range l.cols {
				rows[i] = unsafe.Pointer(&x[i*in.down+min(from, l.cols-1)*in.across])
			}
			tmp := new([tmpLen]float32)
			for i := range tmp {
				tmp[i] = float32(math.NaN())
			}
			l.square(new(pass), &rows, from, to, in, unsafe.Pointer(&y[0]), out, blocks, tmp)
			for b := range blocks {
				for c := range lanes {
					want := dense(m, func(i, j int) float64 {
						if j < from || j >= to {
							return 0
						}
						return float64(x[i*in.down+j*in.across+b*in.vector+c])
					})
					for i := range want {
						for j, w := range want[i] {
							if got := y[i*out.down+j*out.across+b*out.vector+c]; !(math.Abs(float64(got)-w) <= 1e-5*(1+math.Abs(w))) {
								t.Fatalf("%s, columns [%d,%d), block %d of %d, channel %d: (%d,%d) is %v, want %v", name, from, to, b, blocks, c, i, j, got, w)
							}
						}
					}
				}
			}
		}
	}
}

func dense(m [][]float64, x func(i, j int) float64) [][]float64 {
	n := len(m[0])
	half := matrix(len(m), n)
	for i := range m {
		for j := range n {
			for k := range n {
				half[i][j] += m[i][k] * x(k, j)
			}
		}
	}
	y := matrix(len(m), len(m))
	for i := range m {
		for j := range m {
			for k := range n {
				y[i][j] += half[i][k] * m[j][k]
			}
		}
	}
	return y
}
