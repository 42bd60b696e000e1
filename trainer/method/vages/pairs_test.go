package vages

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/grbm"
)

// The terms of KSD against their definition, with the kernel's derivatives by
// differences.
func TestSteinAgainstDifferences(t *testing.T) {
	const b, n = 0.7, 6
	cfg := tinyUnits(func(c *Config) { c.Objective, c.Estimator, c.Bandwidth = KSD, Exact, b })
	r := rig{cfg: cfg, batch: 4}
	out := r.run(t, func(s *step) {
		_, loss := s.upper(s.estimate(nil))
		s.Output("loss", loss)
		s.Output("score", exact().score(s.drawer, s.see(scorePlace).v))
	})
	x, s := r.data(), out["score"]
	for pair := range 2 {
		at := func(x []float64, i int) []float64 { return x[(2*pair+i)*n : (2*pair+i+1)*n] }
		want := stein(at(x, 0), at(x, 1), at(s, 0), at(s, 1), b)
		if got := out["loss"][pair]; !(math.Abs(got-want) <= 1e-5*(1+math.Abs(want))) {
			t.Errorf("pair %d: got %v, want %v", pair, got, want)
		}
	}
}

// stein is the term of a pair x, y with scores sx, sy by its definition: the kernel's
// derivatives are differences.
func stein(x, y, sx, sy []float64, bandwidth float64) (sum float64) {
	n := len(x)
	k := func(p []float64) float64 { // p is x then y
		d := 0.0
		for i := range n {
			d += (p[i] - p[n+i]) * (p[i] - p[n+i])
		}
		return math.Exp(-d / (2 * bandwidth * bandwidth))
	}
	slope := func(f func([]float64) float64, i int) func([]float64) float64 {
		const h = 1e-4
		return func(p []float64) float64 {
			q := slices.Clone(p)
			q[i] += h
			up := f(q)
			q[i] -= 2 * h
			return (up - f(q)) / (2 * h)
		}
	}
	p := slices.Concat(x, y)
	for i := range n {
		sum += sx[i]*sy[i]*k(p) + sx[i]*slope(k, n+i)(p) + sy[i]*slope(k, i)(p) + slope(slope(k, i), n+i)(p)
	}
	return sum
}

// The gradient through the second of each pair, and that through the first, are the
// loss's together.
func TestKSDsGradient(t *testing.T) {
	cfg := tinyUnits(func(c *Config) { c.Objective, c.Estimator = KSD, Exact })
	r := rig{cfg: cfg, batch: 4}
	swapped := func(s *step, x graph.ID) graph.ID {
		rows := make([]graph.ID, 4)
		for i := range rows {
			rows[i] = s.Slice(x, 0, i^1, i^1+1, 1)
		}
		return s.Concat(0, rows...)
	}
	got := r.run(t, func(s *step) {
		first, _ := s.upper(s.estimate(nil))
		s.data = swapped(s, s.data)
		second, _ := s.upper(s.estimate(nil))
		s.gradients(s.Add(s.Sum(first), s.Sum(second)))
	})
	want := r.run(t, func(s *step) {
		v := s.see(scorePlace).v
		score := grbm.Of(s.drawer.theta).Score(s.Context, v)
		k := s.kernel(s.evenRows(v), s.oddRows(v))
		s.gradients(s.Sum(k.stein(s.evenRows(score), s.oddRows(score))))
	})
	if d := distance(got, want); d > 1e-12 {
		t.Errorf("%.2g apart", d)
	}
}

// Pairs are of slots: a rank's share that is odd has none.
func TestOddShare(t *testing.T) {
	cfg := tinyUnits(func(c *Config) { c.Objective = KSD })
	if _, _, err := cfg.Model().Step(2, 3); err == nil {
		t.Error("3 samples are paired")
	}
}

// Particles of the second of each pair are those of its slot.
func TestDrawsOfOddRows(t *testing.T) {
	cfg := tinyUnits(func(c *Config) { c.Objective = KSD })
	out := rig{cfg: cfg, batch: 4}.run(t, func(s *step) {
		s.Output("all", s.latents(meanPlace, 4, graph.Uniform))
		odd := s.drawer
		odd.odd = true
		s.Output("odd", odd.latents(meanPlace, 2, graph.Uniform))
	})
	row := len(out["all"]) / 4
	want := append(append([]float64(nil), out["all"][row:2*row]...), out["all"][3*row:]...)
	if err := ddptest.Near(out["odd"], want, 0); err != nil {
		t.Error(err)
	}
}
