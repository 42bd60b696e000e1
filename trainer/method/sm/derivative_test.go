package sm

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Gradients of each loss in the parameters against central differences along a
// random direction in each variable.
func TestGradients(t *testing.T) {
	const batch, h = 4, 1e-5
	for name, cfg := range cases() {
		t.Run(name, func(t *testing.T) {
			c := context64(1)
			n, d := cfg.Net, cfg.density()
			ps := d.declare(c)
			v := c.Reshape(c.Input("images", graph.T(graph.F64, batch, n.C, n.H, n.W)), graph.D(append([]int{batch}, d.shape().Slice()...)...))
			key := c.Input("key", graph.KeyType)
			loss := c.Mean(trainee{*cfg}.losses(c, d, v, key, key))
			c.Output("loss", loss)
			for i, g := range c.Grad(loss, nn.IDs(ps)...) {
				c.Output(ps[i].Name, g)
			}
			g, err := c.Commit()
			if err != nil {
				t.Fatal(err)
			}
			vars := ddptest.NewVars()
			if err := nn.Initialise(vars, c.Variables(), testSeed); err != nil {
				t.Fatal(err)
			}
			in := inputs(cfg, 0, samples(cfg, batch))
			out, err := ddptest.Run(g, vars, nil, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range ps {
				base := numbers(t, vars, p.Name)
				direction := ddptest.Noise(uint32(i+10), len(base))
				at := func(step float64) float64 { return lossAt(t, g, vars, in, p.Name, base, direction, step) }
				want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
				got := 0.0
				for j, z := range direction {
					got += z * out[p.Name][j]
				}
				if scale := 1e-6 * (1 + math.Abs(want) + math.Abs(out["loss"][0])); !(math.Abs(got-want) <= scale) {
					t.Errorf("%s: slope %v, finite differences give %v", p.Name, got, want)
				}
			}
		})
	}
}

// lossAt is the loss with a variable moved, which is then as before.
func lossAt(t *testing.T, g *graph.Graph, vars exec.Vars, in ddptest.Values, name string, base, direction []float64, step float64) float64 {
	t.Helper()
	moved := append([]float64(nil), base...)
	for j, z := range direction {
		moved[j] += step * z
	}
	ty, _ := vars.Type(name)
	set := func(x []float64) {
		if err := vars.Set(name, ddptest.Tensor(ty, x)); err != nil {
			t.Fatal(err)
		}
	}
	set(moved)
	out, err := ddptest.Run(g, vars, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	set(base)
	return out["loss"][0]
}
