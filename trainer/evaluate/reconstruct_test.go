package main

import (
	"math"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// dimming reconstructs pictures with half of their values by batch statistics, and with
// three quarters by running ones.
type dimming struct{ algo.Model }

func (d dimming) Reconstruct(mode nn.Mode, n int) (*graph.Graph, error) {
	c := nn.NewContext(mode, 1)
	x := c.Input(algo.InputImages, graph.Type{DType: graph.F32, Shape: graph.D(append([]int{n}, d.Takes().Shape.Slice()...)...)})
	kept := 0.75
	if mode == nn.BatchStats {
		kept = 0.5
	}
	c.Output(algo.OutputRecon, c.Scale(x, kept))
	return c.Commit()
}

// The RMSE is over all values of the split, in each mode, beside that of the mean
// picture of the split that was trained on.
func TestReconstruct(t *testing.T) {
	e := probing(t)
	e.trained.Model, e.o.measures, e.o.picture = dimming{e.trained.Model}, measureRMSE, noPicture
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	as := func(int) float64 { return 1 }
	train, test := all(t, "train", as).X, all(t, "test", as).X
	mean := make([]float64, 192)
	for i, v := range train {
		mean[i%192] += v * 192 / float64(len(train))
	}
	var square, beside float64
	for i, v := range test {
		square += v * v / float64(len(test))
		beside += (v - mean[i%192]) * (v - mean[i%192]) / float64(len(test))
	}
	for name, of := range map[string][2]float64{
		"batch":      {*r.RMSEBatch, 0.5 * math.Sqrt(square)},
		"running":    {*r.RMSERunning, 0.25 * math.Sqrt(square)},
		"mean image": {*r.RMSEMeanImage, math.Sqrt(beside)},
	} {
		if got, want := of[0], of[1]; !(math.Abs(got/want-1) <= 1e-5) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
