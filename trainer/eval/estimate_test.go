package eval

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestLogMeanExp(t *testing.T) {
	inf := math.Inf(1)
	log := math.Log
	for _, tt := range []struct {
		name           string
		logw           []float64
		value, se, ess float64
	}{
		{"one", []float64{-3}, -3, math.NaN(), 1},
		{"equal", []float64{5, 5, 5, 5}, 5, 0, 4},
		// weights 1 and 3: mean 2, sd √2, SE √2/(√2·2), ESS 16/10
		{"two", []float64{0, log(3)}, log(2), 0.5, 1.6},
		{"with 0", []float64{-inf, 0}, log(0.5), 1, 1},
		{"large", []float64{1e4, 1e4 + log(3)}, 1e4 + log(2), 0.5, 1.6},
		{"small", []float64{-1e4, -1e4 + log(3)}, -1e4 + log(2), 0.5, 1.6},
	} {
		m, err := LogMeanExp(tt.logw)
		if err != nil || m.N != len(tt.logw) || !near(m.Value, tt.value) || math.Abs(m.ESS-tt.ess) > 1e-9 ||
			math.IsNaN(m.SE) != math.IsNaN(tt.se) || math.Abs(m.SE-tt.se) > 1e-9 {
			t.Errorf("%s: %+v, %v; want %v ± %v, ESS %v", tt.name, m, err, tt.value, tt.se, tt.ess)
		}
	}
	for name, bad := range map[string][]float64{"none": nil, "zeros": {-inf, -inf}, "NaN": {0, math.NaN()}, "infinite": {inf, 0}} {
		if _, err := LogMeanExp(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Over many repetitions the standard error is the spread of the values, and the
// values are too low by half its square: log-normal weights, E[w] = 1.
func TestLogMeanExpIsHonest(t *testing.T) {
	const repetitions, n, sigma = 4000, 200, 0.8
	rng := rand.New(rand.NewPCG(5, 6))
	values := make([]float64, repetitions)
	var se Average
	for r := range values {
		logw := make([]float64, n)
		for i := range logw {
			logw[i] = sigma*rng.NormFloat64() - sigma*sigma/2
		}
		m, err := LogMeanExp(logw)
		if err != nil {
			t.Fatal(err)
		}
		values[r] = m.Value
		se.Add(m.SE)
	}
	mean, sd := moments(values)
	if math.Abs(se.Mean()/sd-1) > 0.05 {
		t.Errorf("standard error %v on average, the values spread by %v", se.Mean(), sd)
	}
	if bias := -sd * sd / 2; math.Abs(mean-bias) > 4*sd/math.Sqrt(repetitions) {
		t.Errorf("the values are off by %v on average, want about %v", mean, bias)
	}
}

func TestAverage(t *testing.T) {
	var none Average
	if !math.IsNaN(none.Mean()) || !math.IsNaN(none.SE()) || none.N() != 0 {
		t.Errorf("of nothing: %v ± %v of %d", none.Mean(), none.SE(), none.N())
	}
	rng := rand.New(rand.NewPCG(7, 8))
	x := make([]float64, 501)
	var all, a, b Average
	for i := range x {
		x[i] = -5800 + 30*rng.NormFloat64()
		all.Add(x[i])
		if i < 200 {
			a.Add(x[i])
		} else {
			b.Add(x[i])
		}
	}
	mean, sd := moments(x)
	for i, v := range b.Sums() {
		a.Sums()[i] += v
	}
	for name, got := range map[string]*Average{"at once": &all, "in parts": &a} {
		if !near(got.Mean(), mean) || math.Abs(got.SD()/sd-1) > 1e-9 || math.Abs(got.SE()-sd/math.Sqrt(501)) > 1e-8 || got.N() != 501 {
			t.Errorf("%s: %v, %v of %d; want %v, %v", name, got.Mean(), got.SD(), got.N(), mean, sd)
		}
	}
	var one, equal, nan Average
	one.Add(3)
	for range 10 {
		equal.Add(0.1)
	}
	nan.Add(1)
	nan.Add(math.NaN())
	nan.Add(1)
	if one.Mean() != 3 || !math.IsNaN(one.SD()) {
		t.Errorf("of one: %v, %v", one.Mean(), one.SD())
	}
	if sd := equal.SD(); !(sd < 1e-8) {
		t.Errorf("equal values deviate by %v", sd)
	}
	if !math.IsNaN(nan.Mean()) || !math.IsNaN(nan.SD()) {
		t.Errorf("with NaN: %v, %v", nan.Mean(), nan.SD())
	}
}

func TestSpread(t *testing.T) {
	s, err := SpreadOf([]float64{1, 2, 3, 4, 5})
	if err != nil || s.N != 5 || s.Mean != 3 || !near(s.SD, math.Sqrt(2.5)) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, tt := range []struct {
		s        Spread
		decimals int
		want     string
	}{{Spread{3, -5800.25, 3.14}, 1, "-5800.2 ± 3.1"}, {Spread{1, 0.316, 0}, 2, "0.32"}, {Spread{2, 1, 0}, 0, "1 ± 0"}} {
		if got := tt.s.Format(tt.decimals); got != tt.want {
			t.Errorf("%+v is %q, want %q", tt.s, got, tt.want)
		}
	}
	_, none := SpreadOf(nil)
	_, diverged := SpreadOf([]float64{1, math.Inf(-1), 2})
	if none == nil || diverged == nil || !strings.Contains(diverged.Error(), "value 1 of 3 is -Inf") {
		t.Error(errors.Join(none, diverged))
	}
}

func ExampleLogMeanExp() {
	logZ, err := LogMeanExp([]float64{-1000, -1000 + math.Log(3)})
	fmt.Printf("%.3f ± %.2f, %.1f of %d weights, %v\n", logZ.Value, logZ.SE, logZ.ESS, logZ.N, err)
	// Output: -999.307 ± 0.50, 1.6 of 2 weights, <nil>
}
