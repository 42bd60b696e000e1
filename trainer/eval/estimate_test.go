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
		if err != nil || m.N != len(tt.logw) || !near(m.Value, tt.value) || !(math.Abs(m.ESS-tt.ess) <= 1e-9) ||
			!(math.IsNaN(m.SE) && math.IsNaN(tt.se) || math.Abs(m.SE-tt.se) <= 1e-9) {
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
	if !(math.Abs(se.Mean()/sd-1) <= 0.05) {
		t.Errorf("standard error %v on average, the values spread by %v", se.Mean(), sd)
	}
	if bias := -sd * sd / 2; !(math.Abs(mean-bias) <= 4*sd/math.Sqrt(repetitions)) {
		t.Errorf("the values are off by %v on average, want about %v", mean, bias)
	}
}

func TestAverage(t *testing.T) {
	var none, three, nan Average
	if !math.IsNaN(none.Mean()) || none.N() != 0 {
		t.Errorf("of nothing: %v of %d", none.Mean(), none.N())
	}
	for _, v := range []float64{-5800, -5830, -5785} {
		three.Add(v)
	}
	if three.Mean() != -5805 || three.N() != 3 {
		t.Errorf("of three: %v of %d", three.Mean(), three.N())
	}
	for _, v := range []float64{1, math.NaN(), 1} {
		nan.Add(v)
	}
	if !math.IsNaN(nan.Mean()) || nan.N() != 3 {
		t.Errorf("with NaN: %v of %d", nan.Mean(), nan.N())
	}
}

func TestSpread(t *testing.T) {
	s, err := SpreadOf([]float64{1, 2, 3, 4, 5})
	if err != nil || s.N != 5 || s.Mean != 3 || !near(s.SD, math.Sqrt(2.5)) {
		t.Errorf("%+v, %v", s, err)
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
