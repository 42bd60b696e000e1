package plan

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/randomgraph"
	"ebtrain/ddp/graph"
)

var (
	graphSeed = flag.Uint64("graphs.seed", 1, "the first seed of TestRandomGraphs")
	graphs    = flag.Int("graphs.count", 25, "how many programs TestRandomGraphs takes")
)

// planned is a backend that runs plans on the machine, in a random order that their
// dependencies allow.
type planned struct {
	exec.Backend
	o     Options
	fixed bool // the layout of some variables is that of a program compiled before
}

func (b planned) Name() string       { return "machine" }
func (b planned) NewVars() exec.Vars { return &exec.HostVars{} }
func (b planned) Close() error       { return nil }
func (b planned) Connect(_ context.Context, host collective.Comm) (collective.Comm, error) {
	return host, nil
}

func (b planned) Compile(g *graph.Graph, eo exec.Options) (exec.Program, error) {
	o := b.o
	o.Name, o.Deterministic, o.Remat = eo.Name, o.Deterministic || eo.Deterministic, o.Remat || eo.Remat
	o.World, o.Rank = exec.Ranks(eo.Comm)
	if b.fixed {
		o.VarLast = fixedLayouts(g)
	}
	p := New(g, o)
	if err := keepsLayouts(p, o); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(len(p.Steps)), 6))
	for i := range p.Steps {
		if k := p.Steps[i].Kind(); k != KindStart && k != KindWait && k != KindCopy && k != KindFill {
			p.Steps[i].Scratch = 64 * r.IntN(5)
		}
	}
	p.Allocate()
	m, err := newMachine(p, 1)
	if err != nil {
		return nil, err
	}
	q := &plannedProgram{machine: m, o: eo, order: shuffled(r, p.Deps()), tensors: map[string]*exec.Tensor{}, pending: map[int]flight{}}
	for _, list := range [][]External{p.Inputs, p.Outputs} {
		for _, e := range list {
			q.tensors[e.Name] = exec.NewTensor(e.Type)
		}
	}
	for i, s := range p.Steps {
		switch op := s.Op.(type) {
		case Start:
			m.steps[i] = func() error { q.start(op); return nil }
		case Wait:
			m.steps[i] = func() error { return q.wait(op) }
		}
	}
	return q, nil
}

// fixedLayouts fixes two thirds of the variables with four axes, half of them in
// channels-last order.
func fixedLayouts(g *graph.Graph) func(name string) (last, fixed bool) {
	images := map[string]int{}
	for _, n := range g.Nodes() {
		if l, ok := n.Op.(graph.Leaf); ok && l.Kind == graph.Var && l.Type.Shape.Rank() == 4 {
			images[l.Name] = len(images)
		}
	}
	return func(name string) (last, fixed bool) {
		k, ok := images[name]
		return ok && k%3 == 0, ok && k%3 < 2
	}
}

// keepsLayouts says which variable lies otherwise than is fixed.
func keepsLayouts(p *Plan, o Options) error {
	for _, e := range p.Vars {
		if o.VarLast == nil {
			break
		}
		if last, fixed := o.VarLast(e.Name); fixed && last != p.Values[e.Value].Last {
			return fmt.Errorf("variable %q %v: channels-last %v, want %v", e.Name, e.Type, !last, last)
		}
	}
	return nil
}

// plannedProgram is a program of it.
type plannedProgram struct {
	*machine
	o       exec.Options
	order   []int
	tensors map[string]*exec.Tensor // inputs and outputs
	pending map[int]flight
	ctx     context.Context
	err     error
}

// flight is a collective that has begun.
type flight struct {
	collective.Pending
	bucket int
	mem    []byte
}

// start begins a collective on a copy of its bucket, which is spoiled.
func (q *plannedProgram) start(op Start) {
	mem := q.bytes(op.Bucket)
	all := exec.NewTensor(q.typ(op.Bucket))
	copy(all.Bytes(), mem)
	spoil(mem)
	vec := collective.VecOf(all.Bytes()).As(all.Type.DType)
	q.pending[op.Number] = flight{q.o.Comm.Start(collective.Request{Kind: op.Kind, Op: op.Op, Vec: vec, Label: op.Label}), op.Bucket, all.Bytes()}
}

func (q *plannedProgram) wait(op Wait) error {
	f, ok := q.pending[op.Number]
	if !ok {
		return fmt.Errorf("collective %d is not under way", op.Number)
	}
	err := f.Wait(q.ctx)
	copy(q.bytes(f.bucket), f.mem)
	return err
}

func (q *plannedProgram) Depth() int                      { return 1 }
func (q *plannedProgram) Input(name string) *exec.Tensor  { return q.tensors[name] }
func (q *plannedProgram) Output(name string) *exec.Tensor { return q.tensors[name] }
func (q *plannedProgram) Stats() exec.Stats {
	return exec.Stats{Nodes: q.p.LiveNodes, Steps: len(q.p.Steps)}
}
func (q *plannedProgram) Dump(io.Writer) error { return nil }
func (q *plannedProgram) Close() error         { return nil }

func (q *plannedProgram) Wait(ctx context.Context) error { return q.err }

func (q *plannedProgram) Launch(ctx context.Context) error {
	q.ctx = ctx
	q.err = q.run()
	return nil
}

func (q *plannedProgram) run() error {
	for at, mem := range q.memory {
		if at.space == Arena || at.space == Bucket || at.space == Output {
			spoil(mem)
		}
	}
	for _, e := range q.p.Inputs {
		copy(q.external(e), q.tensors[e.Name].Bytes())
	}
	for _, e := range q.p.Vars {
		t, err := q.o.Vars.Get(e.Name)
		if err != nil {
			return err
		}
		copy(q.external(e), q.stored(e, t).Bytes())
	}
	for _, i := range q.order {
		if err := q.steps[i](); err != nil {
			return errors.Join(fmt.Errorf("step %d, %v", i, q.p.Steps[i].Op), err)
		}
	}
	all := q.logical()
	for i, e := range q.p.Outputs {
		copy(q.tensors[e.Name].Bytes(), all[i].Bytes())
	}
	for i, e := range q.p.Vars {
		if err := q.o.Vars.Set(e.Name, all[len(q.p.Outputs)+i]); err != nil {
			return err
		}
	}
	return nil
}

// TestRandomGraphs runs random programs' plans, made with every option that changes no
// type, on the machine, which knows nothing but what plans say: more of them with
// go test ./ddp/exec/plan -run RandomGraphs -v -graphs.count 1000.
func TestRandomGraphs(t *testing.T) {
	c := &randomgraph.Checker{Group: exectest.NewGroup}
	for _, t := range []struct {
		name  string
		o     Options
		fixed bool
	}{
		{name: "plain"},
		{name: "apart", o: Options{Apart: 512}},
		{name: "weights last", o: Options{WeightsLast: true}},
		{name: "fixed", o: Options{WeightsLast: true}, fixed: true},
		{name: "joined", o: Options{WeightsLast: true, Join: 1 << 20}},
		{name: "deterministic", o: Options{WeightsLast: true, Deterministic: true}},
		{name: "weights last, wide, rematerialised", o: Options{WeightsLast: true, WidenBF16: true, Remat: true}},
	} {
		target := randomgraph.Target{Name: t.name, Bits: t.name}
		for range 4 {
			target.Ranks = append(target.Ranks, planned{o: t.o, fixed: t.fixed})
		}
		c.Targets = append(c.Targets, target)
	}
	c.Test(t, *graphSeed, *graphs, 0, randomgraph.Limits{Recurrence: 6, Nodes: 80})
}
