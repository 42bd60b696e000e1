package trained

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
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

	run     *Run
	backend exec.Backend
	name    string
	build   Builder
	seed    uint64
	byBatch map[int]exec.Program
}

// NewLook makes a Look, called name in errors, whose draws are named by seed.
func NewLook(run *Run, backend exec.Backend, name string, build Builder, seed uint64) *Look {
	return &Look{Smaller: "--batch", run: run, backend: backend, name: name, build: build, seed: seed, byBatch: map[int]exec.Program{}}
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
	return p, exec.Run(ctx, p)
}

// key names the draws of samples from number first on.
func (l *Look) key(p exec.Program, first int64) {
	if key := p.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(l.seed), 0, first})
	}
}

func (l *Look) program(n int) (exec.Program, error) {
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
