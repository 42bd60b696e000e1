package eblvm

import (
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/langevin"
	"ebtrain/trainer/model/nn"
)

// Plans for the networks give pictures in [0, 1], which differ from one another
// and depend on what they are said to: the latents that are given.
func TestSamples(t *testing.T) {
	const count = 2
	a := langevin.Published().Shortened(1e-9) // a step of each kind
	a.Step = 0.1
	plan := func(p chain.Plan, err error) chain.Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	draw := func(p chain.Plan, declare func(c *nn.Context) []nn.Param, given []float64) []float64 {
		t.Helper()
		c := nn.NewContext(nn.Eval, 1)
		declare(c)
		b := ref.New()
		vars := b.NewVars()
		if err := nn.Initialise(vars, c.Variables(), 1); err != nil {
			t.Fatal(err)
		}
		ch, err := chain.New(b, vars, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := ch.Close(); err != nil {
				t.Error(err)
			}
		}()
		if given != nil {
			if err := vars.Set(p.Vars[0].Name, ddptest.Tensor(p.Vars[0].Type, given)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := ch.Continue(t.Context(), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := (graph.D(count, 1, 8, 8)); out.Type.Shape != want {
			t.Fatalf("pictures of %v, want %v", out.Type.Shape, want)
		}
		x := ddptest.Numbers(out)
		for i, v := range x {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("pixel %d is %v", i, v)
			}
		}
		if half := len(x) / count; slices.Equal(x[:half], x[half:]) {
			t.Error("both pictures are the same")
		}
		return x
	}
	given := plan(tiny.SampleGiven(a, count))
	zeros := draw(given, tiny.Declare, make([]float64, count*tiny.Latent))
	others := draw(given, tiny.Declare, slices.Repeat([]float64{8}, count*tiny.Latent))
	joint := draw(plan(tiny.SampleJoint(a, count)), tiny.Declare, nil)
	visible := draw(plan(tiny.Sample(a, count)), tiny.DeclareVisible, nil)
	for name, x := range map[string][]float64{"other latents": others, "joint": joint, "visible": visible} {
		if slices.Equal(x, zeros) {
			t.Errorf("%s: the pictures are those with latents of 0", name)
		}
	}
}
