package control

import (
	"math"
	"slices"
	"testing"
)

// line are points whose second column is three times the first, and 100 more.
func line(n int) (x []float32) {
	for i := range n {
		v := float32(i) / float32(n)
		x = append(x, v, 100+3*v)
	}
	return x
}

// correlation is that of two columns, beside their means and deviations.
func correlation(x []float32) (r float64, m Moments) {
	m.Add(x[:len(x)/4*2], 2)
	m.Add(x[len(x)/4*2:], 2) // in two parts as in one
	for i := 0; i < len(x); i += 2 {
		r += (float64(x[i]) - m.Mean[0]) * (float64(x[i+1]) - m.Mean[1]) / (m.SD[0] * m.SD[1] * m.N)
	}
	return r, m
}

// Noise has the means and the deviations of points and nothing else of them, shuffled columns
// also their values.
func TestPoints(t *testing.T) {
	x := line(2000)
	if r, m := correlation(x); !(math.Abs(r-1) <= 1e-4) || !(math.Abs(m.Mean[1]-101.5) <= 1e-2) || !(math.Abs(m.SD[1]-3/math.Sqrt(12)) <= 1e-3) {
		t.Fatalf("correlation %v of %+v", r, m)
	}
	noise, shuffled := NormalPoints(x, 3000, 2, 7), ShuffledColumns(x, 2, 7)
	for what, y := range map[string][]float32{"noise": noise, "shuffled": shuffled} {
		r, m := correlation(y) // within four standard errors
		if !(math.Abs(r) <= 4/math.Sqrt(m.N)) || !(math.Abs(m.Mean[0]-0.5) <= 4*0.29/math.Sqrt(m.N)) || !(math.Abs(m.SD[1]-0.866) <= 0.05) {
			t.Errorf("%s: correlation %v of %+v", what, r, m)
		}
	}
	if len(noise) != 6000 || slices.Equal(noise, NormalPoints(x, 3000, 2, 8)) || !slices.Equal(noise[:20], NormalPoints(x, 10, 2, 7)) {
		t.Error("noise is not named by its seed and point")
	}
	column := func(y []float32) (c []float32) {
		for i := 1; i < len(y); i += 2 {
			c = append(c, y[i])
		}
		slices.Sort(c)
		return c
	}
	if !slices.Equal(column(x), column(shuffled)) || slices.Equal(shuffled, ShuffledColumns(x, 2, 8)) {
		t.Error("a shuffled column has other values")
	}
}
