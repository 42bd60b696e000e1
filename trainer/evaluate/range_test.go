package main

import (
	"math"
	"slices"
	"testing"

	"ebtrain/data/loader"
)

// Models whose pictures are in [−1, 1] see data, noise and sets in it, and those whose
// pictures are in [0, 1] data and noise in that; sets are compared in [−1, 1] always.
func TestRangeOfTheModel(t *testing.T) {
	want := read(t, "test")
	for name, tt := range map[string]struct {
		is   loader.Range
		low  float32
		unit bool
	}{"[-1, 1]": {loader.Symmetric, -1, false}, "[0, 1]": {loader.Unit, 0, true}} {
		e := probing(t)
		e.takes.Range = tt.is
		var x []float32
		keep := func(some []float32, _ int) error { x = append(x, some...); return nil }
		if err := e.noise(t.Context())(keep); err != nil || slices.Min(x) < tt.low || slices.Min(x) > tt.low+0.01 || slices.Max(x) < 0.99 || slices.Max(x) > 1 {
			t.Errorf("%s: noise from %v to %v, %v", name, slices.Min(x), slices.Max(x), err)
		}
		x = nil
		if err := e.feed(t.Context(), e.own("data"))(keep); err != nil {
			t.Fatal(err)
		}
		if tt.unit {
			e.symmetric(x)
		}
		if !slices.EqualFunc(x, want.X, same) {
			t.Errorf("%s: data from %v to %v are not those of the file", name, slices.Min(x), slices.Max(x))
		}
		p, err := e.real(t.Context(), "real", e.o.data, "test", 0)
		if err != nil {
			t.Fatal(err)
		}
		if low, high := slices.Min(p.X), slices.Max(p.X); low < -1 || low > -0.9 || high > 1 || high < 0.9 {
			t.Errorf("%s: a set from %v to %v, want [-1, 1]", name, low, high)
		}
	}
}

// same is equality but for the last bits.
func same(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }
