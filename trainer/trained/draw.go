package trained

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Draw is a plan to be run with the weights of a trained model.
type Draw struct {
	Plan    chain.Plan
	Seed    uint64     // of its draws
	Given   []float32  // values of the plan's first variable; nil leaves its initial ones
	Smaller string     // the flags that make the plan smaller, for errors: "--n"
	Each    chain.Step // is told how far it is; may be nil
}

// Draw runs a plan and gives its result.
func (r *Run) Draw(ctx context.Context, backend exec.Backend, d Draw) (out *exec.Tensor, err error) {
	c, err := r.Chain(backend, d.Plan, d.Smaller)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Reset(d.Seed); err != nil {
		return nil, err
	}
	if d.Given != nil {
		if err := r.Give(d.Plan, d.Given); err != nil {
			return nil, err
		}
	}
	return c.Continue(ctx, d.Seed, d.Each)
}

// Give sets the first variable of a plan.
func (r *Run) Give(p chain.Plan, values []float32) error {
	if len(p.Vars) == 0 {
		return errors.New("latents are given to a plan without variables")
	}
	first := p.Vars[0]
	t := exec.NewTensor(first.Type)
	if n := first.Type.Shape.Len(); n != len(values) {
		return fmt.Errorf("%s holds %d values, and %d are given", first.Name, n, len(values))
	}
	for i, v := range values {
		t.SetAt(i, float64(v))
	}
	return r.Vars.Set(first.Name, t)
}

// Samples draws n samples (n, C, H, W), named by seed. Smaller are the flags that
// make n smaller.
func (r *Run) Samples(ctx context.Context, backend exec.Backend, mode nn.Mode, n int, seed uint64, smaller string, each chain.Step) (*exec.Tensor, error) {
	sampler, ok := r.Model.(algo.Sampler)
	if !ok {
		return nil, fmt.Errorf("a model of --algo %s draws no samples", r.Settings.Algo)
	}
	plan, err := sampler.Sample(mode, n)
	if err != nil {
		return nil, err
	}
	return r.Draw(ctx, backend, Draw{Plan: plan, Seed: seed, Smaller: smaller, Each: each})
}

// Chain compiles a plan of the model. Smaller are the flags that make it smaller. The
// caller closes it. A plan that needs more memory than there is for it is an error that
// names them.
func (r *Run) Chain(backend exec.Backend, plan chain.Plan, smaller string) (*chain.Chain, error) {
	for _, s := range plan.Stages {
		if err := device.CheckMemory(backend, s.Graph, smaller); err != nil {
			return nil, err
		}
	}
	m, err := r.room(backend, smaller)
	if err != nil {
		return nil, err
	}
	if m, err = m.besides(plan); err != nil {
		return nil, err
	}
	c, err := chain.New(backend, r.Vars, plan, m.most)
	return c, m.doesNotFit("what is drawn", err)
}
