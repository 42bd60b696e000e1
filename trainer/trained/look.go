package trained

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/picture"
)

// Modes are the values of --stats: whose statistics batch norm uses.
var Modes = map[string]nn.Mode{"batch": nn.BatchStats, "running": nn.Eval}

// Builder builds a graph that looks at n samples: one of the capabilities of
// package algo.
type Builder func(n int) (*graph.Graph, error)

// Look runs one graph of a trained model on batches of any size.
type Look struct {
	run     *Run
	backend exec.Backend
	name    string
	build   Builder
	seed    uint64
	byBatch map[int]exec.Program
}

// NewLook makes a Look, called name in errors, whose draws are named by seed.
func NewLook(run *Run, backend exec.Backend, name string, build Builder, seed uint64) *Look {
	return &Look{run: run, backend: backend, name: name, build: build, seed: seed, byBatch: map[int]exec.Program{}}
}

// At runs the graph on n samples, x (n, C, H, W) in the model's range, the first
// of which is number first of all that are looked at. Its outputs are read with
// the program's Output until the next call.
func (l *Look) At(ctx context.Context, x []float32, n int, first int64) (exec.Program, error) {
	p, err := l.program(n)
	if err != nil {
		return nil, err
	}
	in := p.Input(algo.InputImages).F32()
	if len(x) != len(in) {
		return nil, fmt.Errorf("%s: %d values are not %d samples of the model's size (%d values)", l.name, len(x), n, len(in))
	}
	copy(in, x)
	if key := p.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(l.seed), 0, first})
	}
	return p, exec.Run(ctx, p)
}

func (l *Look) program(n int) (exec.Program, error) {
	if p := l.byBatch[n]; p != nil {
		return p, nil
	}
	g, err := l.build(n)
	if err != nil {
		return nil, err
	}
	if err := device.CheckMemory(g, "--batch"); err != nil {
		return nil, err
	}
	p, err := l.backend.Compile(g, exec.Options{Name: l.name, Vars: l.run.Vars})
	if err == nil {
		l.byBatch[n] = p
	}
	return p, err
}

// Close releases the programs.
func (l *Look) Close() error {
	var errs []error
	for _, p := range l.byBatch {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// RunChain runs a plan with the trained weights, telling each how far it is; each
// may be nil.
func (r *Run) RunChain(ctx context.Context, backend exec.Backend, p chain.Plan, seed uint64, each chain.Step) (*exec.Tensor, error) {
	for _, s := range p.Stages {
		if err := device.CheckMemory(s.Graph, "number of samples"); err != nil {
			return nil, err
		}
	}
	c, err := chain.New(backend, r.Vars, p)
	if err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, seed, each)
	return out, errors.Join(err, c.Close())
}

// Samples draws n samples (n, C, H, W), named by seed.
func (r *Run) Samples(ctx context.Context, backend exec.Backend, mode nn.Mode, n int, seed uint64, each chain.Step) (*exec.Tensor, error) {
	sampler, ok := r.Model.(algo.Sampler)
	if !ok {
		return nil, fmt.Errorf("a model of --algo %s draws no samples", r.Settings.Algo)
	}
	plan, err := sampler.Sample(mode, n)
	if err != nil {
		return nil, err
	}
	return r.RunChain(ctx, backend, plan, seed, each)
}

// Pictures says whether a model's samples are pictures, and not vectors.
func Pictures(in algo.Inputs) bool {
	s := in.Shape
	return (s.At(0) == 1 || s.At(0) == 3) && s.At(1) > 1 && s.At(2) > 1
}

// Images are samples (n, C, H, W) of a model as pictures.
func Images(t *exec.Tensor, in algo.Inputs) picture.Images {
	return Pix(t.F32(), t.Type.Shape.At(0), in)
}

// Pix are n samples of a model as pictures, from their values.
func Pix(x []float32, n int, in algo.Inputs) picture.Images {
	show := picture.Signed
	if in.Range == loader.Unit {
		show = picture.Unit
	}
	s := in.Shape
	return show(x[:n*s.Len()], n, s.At(0), s.At(1), s.At(2))
}
