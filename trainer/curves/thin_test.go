package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestThin: few values are as they are; of many each is in one bin, as its mean and the
// tenths say, counted here one by one.
func TestThin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 79, 80, 81, 999, 2000, 2001, 54321} {
		x, y := make([]float64, n), make([]float64, n)
		for i := range y {
			x[i], y[i] = float64(3*i), r.NormFloat64()
		}
		bins := thin(x, y)
		if n <= singly && len(bins) != n || len(bins) > most {
			t.Errorf("%d values in %d bins", n, len(bins))
		}
		size := 1
		if n > singly {
			size = max(least, int(math.Ceil(float64(n)/most)))
		}
		for i, b := range bins {
			part := y[i*size : min(n, (i+1)*size)]
			sum, below, above := 0.0, 0, 0
			for _, v := range part {
				sum += v
				if v < b.low {
					below++
				}
				if v > b.high {
					above++
				}
			}
			if want := sum / float64(len(part)); !near(b.y, want) {
				t.Errorf("%d values, bin %d: mean %v, want %v", n, i, b.y, want)
			}
			if below != len(part)/10 || above != len(part)/10 {
				t.Errorf("%d values, bin %d of %d: %d below the band, %d above", n, i, len(part), below, above)
			}
			if want := float64(3*i*size) + 1.5*float64(len(part)-1); !near(b.x, want) {
				t.Errorf("%d values, bin %d stands at %v, want %v", n, i, b.x, want)
			}
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestMean(t *testing.T) {
	if m := mean([]float64{math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64, -math.MaxFloat64}); !near(m/math.MaxFloat64, 0) {
		t.Errorf("mean %v, want 0", m)
	}
}

// TestShown: of a hundred values one is cut off at each end, unless all are shown; nothing
// is flat or without an end.
func TestShown(t *testing.T) {
	var v []float64
	for i := range 98 {
		v = append(v, float64(5+i%10))
	}
	v = append(v, 1e9, -1e9)
	if low, high := shown(v, false); !near(low, 4.55) || !near(high, 14.45) {
		t.Errorf("%v to %v, want 4.55 to 14.45", low, high)
	}
	if low, high := shown(v, true); low > -1e9 || high < 1e9 {
		t.Errorf("whole: %v to %v", low, high)
	}
	for _, v := range [][]float64{{0}, {5, 5, 5}, {-1e300, 1e300}, {1e-300}, {-3}} {
		if low, high := shown(v, false); low >= slices.Min(v) || high <= slices.Max(v) || math.IsInf(high-low, 0) {
			t.Errorf("%v: shown from %v to %v", v, low, high)
		}
	}
}
