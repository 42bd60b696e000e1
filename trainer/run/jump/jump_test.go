package jump

import (
	"math"
	"slices"
	"testing"
)

// shown are the jumps that a watch over "a" tells of, shown these values from a step on.
func shown(w *Watch, step int64, values ...float64) []Jump {
	var all []Jump
	for i, v := range values {
		if j, some := w.See(step+int64(i), map[string]float64{"a": v}); some {
			all = append(all, j)
		}
	}
	return all
}

// line is n times a value.
func line(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }

func TestJumps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   []Jump
	}{
		{"conv32's divergence in its first steps, and back", []float64{114, 65, 68, 73, 3.39e9, 52, 62}, []Jump{{4, "a", 3.39e9, 114}}},
		{"below zero", []float64{-1, -2, 1, -200}, []Jump{{3, "a", -200, 2}}},
		{"too little", []float64{1, -2, 1, -199}, nil},
		{"a difference that begins near zero", []float64{4e-4, -2e-3, -3e-3, -7e-3, -0.02, -0.08, -0.3, -0.7, -1.2}, nil},
		{"in the third step", []float64{108, 95, 8.4e12, 59}, []Jump{{2, "a", 8.4e12, 108}}},
		{"a first value that is small by chance", []float64{1e-5, 0.01, 0.02, 0.05}, nil},
		{"nothing to compare with", append(line(0, 9), 1), nil},
		{"one that is told of once", []float64{1, 1, 1, 500, 1, 1, 900, 1, 1e9}, []Jump{{3, "a", 500, 1}}},
		{"a fall, and what was forgotten", slices.Concat(line(1000, 5), line(1, 2*block), []float64{150}), []Jump{{5 + 2*block, "a", 150, 1}}},
		{"a fall, and what is remembered", slices.Concat(line(1000, 5), line(1, block), []float64{150}), nil},
		{"no numbers", []float64{1, 1, 1, math.Inf(1), 2}, nil},
		{"no numbers, and a jump behind them", []float64{1, 1, 1, math.NaN(), math.Inf(-1), 500}, []Jump{{5, "a", 500, 1}}},
	} {
		if got := shown(New([]string{"a"}), 0, tt.values...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestFurthest: of what jumps together the furthest is told of, be it in the middle and not
// the largest, and none again.
func TestFurthest(t *testing.T) {
	w := New([]string{"lower", "kl", "upper", "recon"})
	for step := range int64(4) {
		w.See(step, map[string]float64{"lower": 50, "kl": 70, "upper": 1e6, "recon": 900, "else": 1})
	}
	high := map[string]float64{"lower": 1.7e8, "kl": 3.4e9, "upper": 1e12, "recon": 900, "else": 1e9}
	if j, some := w.See(4, high); !some || j != (Jump{4, "kl", 3.4e9, 70}) {
		t.Errorf("got %v, %v", j, some)
	}
	if j, some := w.See(5, high); some {
		t.Errorf("told again: %v", j)
	}
	high["recon"] = 1e6
	if j, some := w.See(6, high); !some || j.Loss != "recon" {
		t.Errorf("another loss: got %v, %v", j, some)
	}
}

// TestShownFew: one line of the recent steps, as --log-every 100 keeps of those before a
// resume, does not say what is usual, whatever there was before it.
func TestShownFew(t *testing.T) {
	w := New([]string{"a"})
	for step := int64(0); step <= 800; step += 100 {
		shown(w, step, 1)
	}
	shown(w, 900, 0.005)
	if got := shown(w, 1000, line(1, 10)...); got != nil {
		t.Errorf("got %v", got)
	}
	never := New([]string{"a"})
	for step := range int64(5) {
		never.See(step, map[string]float64{"b": 1}) // lines without it are none of it
	}
	if got := shown(never, 5, 1e-5, 1); got != nil {
		t.Errorf("got %v of a loss that two lines have", got)
	}
	if got, want := shown(w, 1010, 100), []Jump{{1010, "a", 100, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestShownBefore: who is shown the steps before, all or those that were kept, tells of
// what comes after as if it had seen them.
func TestShownBefore(t *testing.T) {
	before := slices.Concat(line(7, 100), []float64{900}, line(7, 100))
	w := New([]string{"a"})
	shown(w, 0, before...)
	if got := shown(w, 201, 7, 1e6); got != nil {
		t.Errorf("told again: %v", got)
	}
	w = New([]string{"a"})
	for i := 0; i < 100; i += 10 { // as --log-every 10 keeps
		shown(w, int64(i), before[i])
	}
	if got, want := shown(w, 100, before[100:]...), []Jump{{100, "a", 900, 7}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSeeAllocatesNothing(t *testing.T) {
	w, values, step := New([]string{"a", "b"}), map[string]float64{"a": 1, "b": 2}, int64(0)
	if n := testing.AllocsPerRun(100, func() { w.See(step, values); step++ }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
