package control

import (
	"math"

	"ebtrain/ddp/philox"
)

// Moments are the mean and the standard deviation of each of d columns of points, (n, d).
type Moments struct {
	N        float64
	Mean, SD []float64
	squares  []float64
}

// Add takes more points.
func (m *Moments) Add(x []float32, d int) {
	if m.Mean == nil {
		m.Mean, m.SD, m.squares = make([]float64, d), make([]float64, d), make([]float64, d)
	}
	for at := 0; at+d <= len(x); at += d {
		m.N++
		for i, v := range x[at : at+d] {
			off := float64(v) - m.Mean[i]
			m.Mean[i] += off / m.N
			m.squares[i] += off * (float64(v) - m.Mean[i])
			m.SD[i] = math.Sqrt(m.squares[i] / m.N)
		}
	}
}

// Normal is point i of noise, with these means and deviations, whose columns know nothing of
// each other. The draw is that of name.
func (m *Moments) Normal(name philox.Name) []float32 {
	u, x := make([]float64, len(m.Mean)), make([]float32, len(m.Mean))
	name.Normal(u)
	for i, v := range u {
		x[i] = float32(m.Mean[i] + m.SD[i]*v)
	}
	return x
}

// NormalPoints are n points that have nothing of others, x (…, d), but the mean and the
// deviation of each column.
func NormalPoints(x []float32, n, d int, seed uint64) []float32 {
	var m Moments
	m.Add(x, d)
	out := make([]float32, 0, n*d)
	for i := range n {
		out = append(out, m.Normal(name(seed, philox.SamplingNoise, i))...)
	}
	return out
}

// ShuffledColumns are points (n, d) each of whose columns has the values that it had, in
// another order: so what columns have to do with each other is lost, and nothing else.
func ShuffledColumns(x []float32, d int, seed uint64) []float32 {
	out := make([]float32, len(x))
	for i := range d {
		for to, from := range name(seed, philox.SamplingPixels, i).Perm(len(x) / d) {
			out[to*d+i] = x[from*d+i]
		}
	}
	return out
}
