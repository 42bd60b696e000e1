package nets

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/nn"
)

// The parameter counts of algorithms.md §1.2 (i), in millions.
func TestParameterCounts(t *testing.T) {
	n := Conv{Size: 32, Channels: 3, Width: 64, Latent: 100}
	c := nn.NewContext(nn.Train, 1)
	v := c.Input("v", graph.T(graph.F32, 2, 3, 32, 32))
	_, e := n.Energy(c, v)
	mean, logVar := n.Inference(c, v)
	g := n.Generator(c, mean)
	if _, err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		net  string
		want float64
	}{{"energy", 7.39}, {"inference", 2.78}, {"generator", 4.45}} {
		count := 0
		for _, p := range c.Params(tt.net) {
			count += c.Shape(p.ID).Len()
		}
		if got := float64(count) / 1e6; math.Abs(got-tt.want) > 0.005 {
			t.Errorf("%s has %.3f M parameters, want %.2f M", tt.net, got, tt.want)
		}
	}
	shapes := map[graph.ID]graph.Shape{e: graph.D(2, 1), mean: graph.D(2, 100), logVar: graph.D(2, 100), g: graph.D(2, 3, 32, 32)}
	for id, want := range shapes {
		if got := c.Shape(id); got != want {
			t.Errorf("shape %v, want %v", got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	ok := Conv{32, 3, 64, 100}
	for _, tt := range []struct {
		name string
		n    Conv
		want string
	}{
		{"paper", ok, ""},
		{"size", Conv{28, 3, 64, 100}, "32x32"},
		{"channels", Conv{32, 0, 64, 100}, "channel"},
		{"width", Conv{32, 3, 10, 100}, "multiple of 4"},
		{"latent", Conv{32, 3, 64, 0}, "latent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.n.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
