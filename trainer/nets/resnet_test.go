package nets

import (
	"math"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/nn"
)

// The parameter counts of algorithms.md §1.2 (iii), in millions.
func TestResNetParameterCounts(t *testing.T) {
	for _, tt := range []struct {
		name string
		n    ResNet
		want [3]float64 // E, Q, G
		half float64    // half a unit of the last digit given
	}{
		{"cifar", ResNet{Size: 32, Channels: 3, Width: 64, Latent: 128}, [3]float64{1.05, 1.09, 4.28}, 0.005},
		{"celeba128", ResNet{Size: 128, Channels: 3, Width: 64, Latent: 128}, [3]float64{29.0, 29.3, 32.2}, 0.05},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := nn.NewContext(nn.Train, 1)
			v := c.Input("v", graph.T(graph.F32, 2, 3, tt.n.Size, tt.n.Size))
			_, e := tt.n.Energy(c, v)
			mean, logVar := tt.n.Inference(c, v)
			g := tt.n.Generator(c, mean)
			if _, err := c.Commit(); err != nil {
				t.Fatal(err)
			}
			for i, net := range []string{"energy", "inference", "generator"} {
				count := 0
				for _, p := range c.Params(net) {
					count += c.Shape(p.ID).Len()
				}
				if got := float64(count) / 1e6; math.Abs(got-tt.want[i]) > tt.half {
					t.Errorf("%s has %.3f M parameters, want %.2f M", net, got, tt.want[i])
				}
			}
			want := map[graph.ID]graph.Shape{e: graph.D(2, 1), mean: graph.D(2, 128), logVar: graph.D(2, 128), g: c.Shape(v)}
			for id, s := range want {
				if c.Shape(id) != s {
					t.Errorf("shape %v, want %v", c.Shape(id), s)
				}
			}
		})
	}
}
