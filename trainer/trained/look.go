package trained

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Modes are the values of --stats: whose statistics batch norm uses.
var Modes = map[string]nn.Mode{"batch": nn.BatchStats, "running": nn.Eval}

// Builder builds a graph that looks at n samples: one of the capabilities of
// package algo.
type Builder func(n int) (*graph.Graph, error)

// Look runs one graph of a trained model on batches of any size.
type Look struct {
	// Smaller are the flags that make its batches smaller, for errors.
	Smaller string

	// Before gives what runs on n samples before the graph does, with its variables; nil
	// is nothing.
	Before func(n int) ([]chain.Stage, []nn.Variable, error)

	run     *Run
	backend exec.Backend
	name    string
	build   Builder
	seed    uint64
	byBatch map[int]*looking
}

// looking is a compiled graph, and what runs before it.
type looking struct {
	exec.Program
	stages []stage
}

type stage struct {
	exec.Program
	times int
}

// each calls f with all programs.
func (p *looking) each(f func(exec.Program)) {
	for _, s := range p.stages {
		f(s.Program)
	}
	if p.Program != nil {
		f(p.Program)
	}
}

// run runs all, in order.
func (p *looking) run(ctx context.Context) error {
	for _, s := range p.stages {
		for range s.times {
			if err := exec.Run(ctx, s.Program); err != nil {
				return err
			}
		}
	}
	return exec.Run(ctx, p.Program)
}

func (p *looking) Close() error {
	var errs []error
	p.each(func(one exec.Program) { errs = append(errs, one.Close()) })
	return errors.Join(errs...)
}

// NewLook makes a Look, called name in errors, whose draws are named by seed.
func NewLook(run *Run, backend exec.Backend, name string, build Builder, seed uint64) *Look {
	return &Look{Smaller: "--batch", run: run, backend: backend, name: name, build: build, seed: seed, byBatch: map[int]*looking{}}
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
	l.key(p, first)
	return p, p.run(ctx)
}

// key names the draws of samples from number first on.
func (l *Look) key(p *looking, first int64) {
	p.each(func(one exec.Program) {
		if key := one.Input(algo.InputKey); key != nil {
			copy(key.I64(), []int64{int64(l.seed), 0, first})
		}
	})
}

func (l *Look) program(n int) (*looking, error) {
	if p := l.byBatch[n]; p != nil {
		return p, nil
	}
	g, err := l.build(n)
	if err != nil {
		return nil, err
	}
	if err := device.CheckMemory(l.backend, g, l.Smaller); err != nil {
		return nil, err
	}
	m, err := l.run.room(l.backend, l.Smaller)
	if err != nil {
		return nil, err
	}
	p := &looking{}
	if p.stages, err = l.stages(n, m); err != nil { // first: the graph reads their variables
		return nil, errors.Join(err, p.Close())
	}
	one, err := m.compile(l.backend, l.name, l.run.Vars, g)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Program, l.byBatch[n] = one, p
	return p, nil
}

// stages compiles what runs on n samples before the graph does; on error those that it
// has.
func (l *Look) stages(n int, m room) (all []stage, err error) {
	if l.Before == nil {
		return nil, nil
	}
	stages, vars, err := l.Before(n)
	if err != nil {
		return nil, err
	}
	if err := nn.Initialise(l.run.Vars, vars, l.seed); err != nil {
		return nil, err
	}
	for _, s := range stages {
		one, err := m.compile(l.backend, s.Name, l.run.Vars, s.Graph)
		if err != nil {
			return all, err
		}
		all = append(all, stage{one, s.Times})
	}
	return all, nil
}

// Close releases the programs.
func (l *Look) Close() error {
	var errs []error
	for _, p := range l.byBatch {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
