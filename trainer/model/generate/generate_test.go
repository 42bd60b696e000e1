package generate

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

const latent = 3

// pairs makes 1×1×2 pictures of latents: the first two, doubled. Its layers are to be in
// this mode.
func pairs(t *testing.T, mode nn.Mode) Net {
	return Net{Latent: latent, Picture: graph.D(1, 1, 2), G: func(c *nn.Context, h graph.ID) graph.ID {
		if c.Mode != mode || c.World != 1 {
			t.Errorf("mode %v of %d ranks, want %v of one", c.Mode, c.World, mode)
		}
		return c.Scale(c.Reshape(c.Slice(h, 1, 0, 2, 1), graph.D(c.Batch(h), 1, 1, 2)), 2)
	}}
}

// drawn is the result of a plan under a seed, whose first variable is h if h is not
// nil.
func drawn(t *testing.T, p chain.Plan, err error, h []float64) []float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	vars := ddptest.NewVars()
	if err := nn.Initialise(vars, p.Vars, 1); err != nil {
		t.Fatal(err)
	}
	if h != nil {
		if err := vars.Set(p.Vars[0].Name, ddptest.Tensor(p.Vars[0].Type, h)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ddptest.Run(p.Stages[0].Graph, vars, nil, ddptest.Values{chain.InputKey: {7, 0, 0}}); err != nil {
		t.Fatal(err)
	}
	var x *exec.Tensor
	if x, err = vars.Get(p.Out); err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// Samples are G of latents that are named by the seed and the sample; those of given
// latents are G of these.
func TestPlans(t *testing.T) {
	for _, n := range []int{2, 5} {
		var h, want []float64
		for i := range n {
			row := make([]float64, latent)
			philox.Name{Seed: 7, Purpose: philox.Sampling, Sample: uint32(i)}.Normal(row)
			h, want = append(h, row...), append(want, 2*row[0], 2*row[1])
		}
		p, err := pairs(t, nn.BatchStats).Sample(nn.BatchStats, n)
		if err := ddptest.Near(drawn(t, p, err, nil), want, 1e-6); err != nil {
			t.Errorf("%d samples: %v", n, err)
		}
		p, err = pairs(t, nn.Eval).Given(n)
		if err := ddptest.Near(drawn(t, p, err, h), want, 1e-6); err != nil {
			t.Errorf("%d samples of given latents: %v", n, err)
		}
	}
}
