package optim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

func TestScheduleRates(t *testing.T) {
	constant := Schedule{Kind: Constant, Base: 1e-3}
	cosine := Schedule{Kind: Cosine, Base: 1e-4, Steps: 300}
	linear := Schedule{Kind: Linear, Base: 1e-4, Steps: 200}
	warm := Schedule{Kind: Linear, Base: 1e-4, Steps: 200, Warmup: 9}
	for _, tt := range []struct {
		s    Schedule
		step int64
		want float64
	}{
		{constant, 0, 1e-3},
		{constant, 1e9, 1e-3},
		{cosine, 0, 1e-4},
		{cosine, 100, 1e-6 + 99e-6*0.75}, // cos 60° = ½
		{cosine, 150, 1e-6 + 99e-6*0.5},
		{cosine, 200, 1e-6 + 99e-6*0.25},
		{cosine, 300, 1e-6},
		{cosine, 1e9, 1e-6},
		{linear, 0, 1e-4},
		{linear, 50, 0.75e-4},
		{linear, 199, 0.5e-6},
		{linear, 200, 0},
		{linear, 1e9, 0},
		{warm, 0, 1e-5},
		{warm, 8, 0.9e-4 * 0.96},
		{warm, 9, 1e-4 * 0.955},
		{warm, 50, 0.75e-4},
	} {
		if got := tt.s.Rate(tt.step); !(math.Abs(got-tt.want) <= 1e-12*tt.want+1e-20) {
			t.Errorf("%+v at step %d: got %v, want %v", tt.s, tt.step, got, tt.want)
		}
	}
}

func TestScheduleValidate(t *testing.T) {
	for _, tt := range []struct {
		s    Schedule
		want string
	}{
		{Schedule{Kind: Constant, Base: 1}, ""},
		{Schedule{Kind: Cosine, Base: 1e-6, Steps: 1}, ""},
		{Schedule{Base: 1}, "learning-rate schedule"},
		{Schedule{Kind: "step", Base: 1}, `"step"`},
		{Schedule{Kind: Linear, Base: 1e-9, Steps: 1}, ""},
		{Schedule{Kind: Linear, Base: 1}, "linear schedule over at least one step"},
		{Schedule{Kind: Constant}, "learning rate above 0"},
		{Schedule{Kind: Constant, Base: math.NaN()}, "learning rate above 0"},
		{Schedule{Kind: Constant, Base: math.Inf(1)}, "learning rate above 0"},
		{Schedule{Kind: Cosine, Base: 1}, "at least one step"},
		{Schedule{Kind: Cosine, Base: 1e-7, Steps: 5}, "where a cosine schedule ends"},
	} {
		if err := tt.s.Validate(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.s, err, tt.want)
		}
	}
}

// What SetRow writes to a row is what Rows reads there.
func TestRows(t *testing.T) {
	c := float64Context()
	rows := Rows(c, "rates", 3)
	in := exec.NewTensor(graph.T(graph.F64, 3, 2))
	for i, r := range rows {
		c.Output(fmt.Sprint("rate", i), r.Rate)
		c.Output(fmt.Sprint("correct", i), r.Correct)
	}
	SetRow(in, 0, AdamRates(3e-4, 0.5, 0.9, 1))
	SetRow(in, 1, AdamRates(3e-4, 0.5, 0.9, 2))
	SetRow(in, 2, DescentRates(0.25))
	out := run(t, c, nil, ddptest.Values{"rates": ddptest.Numbers(in)})
	for i, want := range [][2]float64{{6e-4, 1 / math.Sqrt(0.1)}, {4e-4, 1 / math.Sqrt(0.19)}, {0.25, 1}} {
		got := []float64{out[fmt.Sprint("rate", i)][0], out[fmt.Sprint("correct", i)][0]}
		if err := ddptest.Near(got, want[:], 1e-15); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

func TestClipNorm(t *testing.T) {
	for _, tt := range []struct {
		name       string
		d          graph.DType
		a, b       []float64
		limit      float64
		norm, want float64 // the length, and the factor of the clipped
	}{
		{"above", graph.F64, []float64{3, 0}, []float64{-4}, 1, 5, 0.2},
		{"at the limit", graph.F64, []float64{3, 0}, []float64{-4}, 5, 5, 1},
		{"below", graph.F64, []float64{3, 0}, []float64{-4}, 6, 5, 1},
		{"zero", graph.F32, []float64{0, 0}, []float64{0}, 1, 0, 1},
		{"squares beyond float32", graph.F32, []float64{3e30, 0}, []float64{4e30}, 1, 5e30, 2e-31},
		{"squares below float32", graph.F32, []float64{3e-30, 0}, []float64{4e-30}, 1e-30, 5e-30, 0.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := nn.NewContext(nn.Train, 1)
			c.DType = tt.d
			clipped, norm := ClipNorm(c, []graph.ID{c.Input("a", graph.T(tt.d, 2)), c.Input("b", graph.T(tt.d))}, tt.limit)
			got := run(t, c, map[string]graph.ID{"a": clipped[0], "b": clipped[1], "norm": norm}, ddptest.Values{"a": tt.a, "b": tt.b})
			for name, want := range map[string][]float64{"a": tt.a, "b": tt.b, "norm": {tt.norm / tt.want}} {
				for i, w := range want {
					if w *= tt.want; !(math.Abs(got[name][i]-w) <= 1e-6*math.Abs(w)) {
						t.Errorf("%s: element %d is %v, want %v", name, i, got[name][i], w)
					}
				}
			}
		})
	}
	c := float64Context()
	clipped, norm := ClipNorm(c, []graph.ID{c.Input("a", graph.T(graph.F64, 2))}, 1)
	got := run(t, c, map[string]graph.ID{"a": clipped[0], "norm": norm}, ddptest.Values{"a": {math.NaN(), 1}})
	if !math.IsNaN(got["norm"][0]) || !math.IsNaN(got["a"][1]) {
		t.Errorf("a gradient that is not a number is hidden: norm %v, clipped %v", got["norm"], got["a"])
	}
}
