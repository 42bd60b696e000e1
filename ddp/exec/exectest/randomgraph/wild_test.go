package randomgraph_test

import (
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest/randomgraph"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// every applies change to all elements of every output of floating point.
func every(change func(float64) float64) func(*graph.Graph, exec.Program) {
	return func(g *graph.Graph, p exec.Program) {
		for _, o := range g.Outputs() {
			y := p.Output(o.Name)
			for i := range y.Type.Shape.Len() {
				if y.Type.DType.IsFloat() {
					y.SetAt(i, change(y.At(i)))
				}
			}
		}
	}
}

// TestWildFaultsAreFound: a backend that hides what is not finite, or invents it, is found
// by programs with infinities and NaN among their leaves.
func TestWildFaultsAreFound(t *testing.T) {
	const all = 20
	var programs []*randomgraph.Program
	for seed := uint64(0); len(programs) < all; seed++ {
		p, err := randomgraph.Grow(randomgraph.FromSeed(seed), small)
		if err != nil {
			t.Fatal(err)
		}
		if p.Wild() == "infinities and NaN" {
			programs = append(programs, p)
		}
	}
	for _, f := range []struct {
		name  string
		be    faulty
		least int // of 20 programs
	}{
		{"NaN becomes 0", faulty{strike: every(func(v float64) float64 {
			if v != v {
				return 0
			}
			return v
		})}, 12},
		{"an infinity becomes a number", faulty{strike: every(func(v float64) float64 {
			if math.IsInf(v, 0) {
				return math.Copysign(3e38, v)
			}
			return v
		})}, 10},
		{"a number becomes NaN", faulty{strike: every(func(v float64) float64 {
			if a := math.Abs(v); a == min(max(a, 0.3), 0.5) {
				return math.NaN()
			}
			return v
		})}, 10},
	} {
		f.be.Backend = ref.New()
		c := checker(f.be)
		found := 0
		for _, p := range programs {
			if c.Check(p) != nil {
				found++
			}
		}
		t.Logf("%s: found by %d of %d", f.name, found, all)
		if found < f.least {
			t.Errorf("%s: found by %d of %d programs, want %d", f.name, found, all, f.least)
		}
	}
}
