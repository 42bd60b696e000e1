package eblvm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// The largest curvature λ of the energy in its latents is what rates of Langevin steps on
// them are told by: above 4/λ they come apart. It grows with the width, so a rate that is
// too large for one is not for another (the experiment vages-mnist).
func TestCurvatureInLatents(t *testing.T) {
	for width, want := range map[int]float64{8: 7.5, 64: 43} {
		net := Net{Trunk: Trunk{Size: 32, Channels: 1, Width: width, Blocks: 2}, Latent: 50, PosteriorWidth: width}
		if got := curvature(t, net); !(math.Abs(got-want) <= 0.1*want) {
			t.Errorf("width %d: %.1f, want about %v", width, got, want)
		}
	}
}

// curvature is that of starting weights, for one picture and one draw of latents, by
// power iteration.
func curvature(t *testing.T, net Net) float64 {
	t.Helper()
	const times = 20
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	net.Declare(c)
	h, u := c.Input("h", graph.T(graph.F64, 1, net.Latent)), c.Input("u", graph.T(graph.F64, 1, net.Latent))
	f := c.Input("f", graph.T(graph.F64, 1, net.Latent))
	slope := c.Grad(c.Sum(net.EnergyOf(c, f, h)), h)[0]
	c.Output("product", c.Grad(c.Sum(c.Mul(slope, u)), h)[0])
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	for _, v := range c.Variables() {
		if err := vars.Set(v.Name, v.Value(1)); err != nil {
			t.Fatal(err)
		}
	}
	in := ddptest.Values{"h": ddptest.Noise(1, net.Latent), "u": ddptest.Noise(2, net.Latent), "f": ddptest.Noise(3, net.Latent)}
	largest := 0.0
	for range times {
		out, err := ddptest.Run(g, vars, nil, in)
		if err != nil {
			t.Fatal(err)
		}
		largest = 0
		for _, x := range out["product"] {
			largest += x * x
		}
		largest = math.Sqrt(largest)
		for i, x := range out["product"] {
			in["u"][i] = x / largest
		}
	}
	return largest
}
