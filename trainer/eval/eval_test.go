package eval

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) }

func TestRMSE(t *testing.T) {
	// differences 1, −1, 2, 0 over two images of one pixel and two channels
	got, want := []float32{0.5, 0, 1, 0.25}, []float32{-0.5, 1, -1, 0.25}
	var e SquaredError
	if !math.IsNaN(e.RMSE()) {
		t.Errorf("RMSE of nothing is %v, want NaN", e.RMSE())
	}
	if err := e.Add(got, want); err != nil {
		t.Fatal(err)
	}
	if r := e.RMSE(); !near(r, math.Sqrt(6.0/4)) {
		t.Errorf("RMSE %v, want √1.5", r)
	}
	if err := e.Add(got, want[:3]); err == nil {
		t.Error("unequal lengths give no error")
	}
}

// The published figure: RMSE 0.168 on CIFAR-10 is 86.7 summed over an image's
// 3072 values (algorithms: BiDVL, evaluation).
func TestRMSEPublished(t *testing.T) {
	got := make([]float32, 3*32*32)
	want := make([]float32, len(got))
	for i := range got {
		got[i] = 0.168
	}
	var e SquaredError
	if err := e.Add(got, want); err != nil {
		t.Fatal(err)
	}
	if r, sum := e.RMSE(), e.sums[0]; !(math.Abs(r-0.168) <= 1e-7) || !(math.Abs(sum-86.7) <= 0.05) {
		t.Errorf("RMSE %v, sum of squares %v; want 0.168 and 86.7", r, sum)
	}
}

func TestMeanImageBaseline(t *testing.T) {
	m := NewMeanImage(2)
	if !math.IsNaN(float64(m.Mean()[0])) {
		t.Errorf("mean of nothing is %v", m.Mean())
	}
	if err := errors.Join(m.Add([]float32{0, 1, 1, 0}), m.Add([]float32{-1, 0.5})); err != nil {
		t.Fatal(err)
	}
	if mean := m.Mean(); mean[0] != 0 || mean[1] != 0.5 {
		t.Errorf("mean %v, want [0 0.5]", mean)
	}
	var e SquaredError
	if err := e.AddEach(m.Mean(), []float32{0, 1, 1, 0, -1, 0.5}); err != nil {
		t.Fatal(err)
	}
	if r, want := e.RMSE(), math.Sqrt((0.25+1+0.25+1)/6); !near(r, want) {
		t.Errorf("baseline %v, want %v", r, want)
	}
	if m.Add(make([]float32, 3)) == nil || e.AddEach(make([]float32, 2), make([]float32, 3)) == nil ||
		NewMeanImage(0).Add(nil) == nil || e.AddEach(nil, nil) == nil {
		t.Error("half an image, or an image of nothing, gives no error")
	}
}

func TestDescribe(t *testing.T) {
	x := []float64{4, 1, math.NaN(), 2, 3, math.Inf(1), 5}
	d, err := Describe(x)
	if err != nil {
		t.Fatal(err)
	}
	if d.N != 5 || d.NonFinite != 2 || d.Min != 1 || d.Max != 5 || d.Mean != 3 || !near(d.SD, math.Sqrt(2.5)) {
		t.Errorf("%+v", d)
	}
	want := map[float64]float64{0.01: 1.04, 0.05: 1.2, 0.25: 2, 0.5: 3, 0.75: 4, 0.95: 4.8, 0.99: 4.96}
	for _, q := range d.Quantiles {
		if !near(q.Value, want[q.P]) {
			t.Errorf("quantile %v is %v, want %v", q.P, q.Value, want[q.P])
		}
	}
	if x[0] != 4 || x[1] != 1 {
		t.Error("the sample was changed")
	}
}

func TestDescribeCorners(t *testing.T) {
	if _, err := Describe([]float64{math.NaN(), math.Inf(-1)}); !notFinite(err) || !strings.Contains(err.Error(), "none of 2 values") {
		t.Errorf("no finite value: %v", err)
	}
	if _, err := Describe(nil); err == nil || notFinite(err) {
		t.Errorf("no value: %v", err)
	}
	if d, err := Describe([]float64{7}); err != nil || d.SD != 0 || d.Quantiles[0].Value != 7 || d.Quantiles[6].Value != 7 {
		t.Errorf("one value: %+v, %v", d, err)
	}
	// The deviation of values far from zero survives: no cancellation.
	if d, err := Describe([]float64{1e9 + 1, 1e9 + 2, 1e9 + 3}); err != nil || d.SD != 1 {
		t.Errorf("SD %v, %v; want 1", d.SD, err)
	}
}

// notFinite says whether an error is of a model's numbers, which would come out again.
func notFinite(err error) bool {
	_, ok := errors.AsType[*NotFiniteError](err)
	return ok
}

// pairs is the definition of the AUROC, in O(n²).
func pairs(positive, negative []float64) float64 {
	won := 0.0
	for _, p := range positive {
		for _, n := range negative {
			if p > n {
				won++
			} else if p == n {
				won += 0.5
			}
		}
	}
	return won / float64(len(positive)) / float64(len(negative))
}

func TestAUROC(t *testing.T) {
	inf := math.Inf(1)
	tests := []struct {
		name     string
		pos, neg []float64
		want     float64
	}{
		{"perfect", []float64{3, 4}, []float64{1, 2}, 1},
		{"reversed", []float64{1, 2}, []float64{3, 4}, 0},
		{"all tied", []float64{5, 5, 5}, []float64{5, 5}, 0.5},
		{"one swap", []float64{2, 4}, []float64{1, 3}, 0.75},
		{"half tie", []float64{1, 2}, []float64{1}, 0.75},
		{"infinite", []float64{inf, 0}, []float64{-inf, inf}, 0.625},
		{"signed zero", []float64{0}, []float64{math.Copysign(0, -1)}, 0.5},
	}
	for _, tt := range tests {
		if got, err := AUROC(tt.pos, tt.neg); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", tt.name, got, err, tt.want)
		}
	}
	for i, bad := range [][2][]float64{{nil, {1}}, {{1}, nil}, {{math.NaN()}, {1}}, {{1}, {math.NaN()}}} {
		if _, err := AUROC(bad[0], bad[1]); err == nil || notFinite(err) != (i > 1) {
			t.Errorf("AUROC(%v, %v) gives the error %v", bad[0], bad[1], err)
		}
	}
}

func TestAUROCAgainstPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		levels := 1 + rng.IntN(40) // few levels: many ties
		draw := func(shift float64) []float64 {
			x := make([]float64, 1+rng.IntN(60))
			for i := range x {
				x[i] = math.Floor(float64(levels)*rng.Float64()) + shift
			}
			return x
		}
		pos, neg := draw(1), draw(0)
		got, err := AUROC(pos, neg)
		if err != nil || !near(got, pairs(pos, neg)) {
			t.Fatalf("AUROC(%v, %v) = %v, %v; by pairs %v", pos, neg, got, err, pairs(pos, neg))
		}
	}
}

func ExampleAUROC() {
	energyOfData, energyOfNoise := []float64{0.1, 0.2, 0.7}, []float64{0.6, 0.9, 1.5}
	negated := func(e []float64) []float64 {
		s := make([]float64, len(e))
		for i := range e {
			s[i] = -e[i]
		}
		return s
	}
	a, err := AUROC(negated(energyOfData), negated(energyOfNoise))
	fmt.Printf("%.3f %v\n", a, err)
	// Output: 0.889 <nil>
}
