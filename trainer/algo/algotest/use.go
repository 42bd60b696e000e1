package algotest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// samples is how many a trained model is asked about.
const samples = 3

// anySize is a size that is the model's own.
const anySize = -1

// user asks a trained model.
type user struct {
	rig
	backend exec.Backend
	vars    exec.Vars
	specs   []nn.Variable
}

// trained is a model after some steps.
func (r rig) trained(b exec.Backend) (user, error) {
	g, specs, err := r.model.Step(1, r.batch())
	if err != nil {
		return user{}, err
	}
	u := user{r, b, b.NewVars(), specs}
	if err := nn.Initialise(u.vars, specs, seed); err != nil {
		return user{}, err
	}
	stages, err := r.stages(1, r.batch(), asIs)
	if err != nil {
		return user{}, err
	}
	return u, compiled(b, g, stages, exec.Options{Vars: u.vars}, func(p exec.Program) error {
		_, err := r.steps(p, place{0, 1, r.batch()}, 0, 2)
		return err
	})
}

// use checks one thing that the model can do, and that it is then as it was.
func (u user) use(c capability) error {
	before, err := u.bits()
	if err != nil {
		return err
	}
	if err := c.check(u); err != nil {
		return err
	}
	if after, err := u.bits(); err != nil || !bytes.Equal(after, before) {
		return errors.Join(err, errors.New("the model is not as it was"))
	}
	return nil
}

// bits are those of all variables of the model.
func (u user) bits() (all []byte, err error) {
	for _, v := range u.specs {
		x, err := u.vars.Get(v.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, x.Bytes()...)
	}
	return all, nil
}

// pictures is the shape of the samples.
func (u user) pictures() []int { return append([]int{samples}, u.model.Takes().Shape.Slice()...) }

// looks runs a graph that reads the model, and checks what it takes and gives.
func (u user) looks(g *graph.Graph, err error, want map[string][]int) error {
	return u.looksAfter(nil, g, err, want)
}

// looksAfter does so after stages.
func (u user) looksAfter(stages []chain.Stage, g *graph.Graph, err error, want map[string][]int) error {
	if err != nil {
		return err
	}
	in := inputsOf(g)
	if err := u.own(in, samples); err != nil {
		return err
	}
	if err := reads(g, in, want); err != nil {
		return err
	}
	return compiled(u.backend, g, stages, exec.Options{Vars: u.vars}, func(p exec.Program) error {
		u.show(p, 100, place{0, 1, samples})
		fill(p, algo.InputKey, seed, 100, 0)
		if err := exec.Run(u.ctx, p); err != nil {
			return err
		}
		for name, dims := range want {
			if err := finite(name, p.Output(name), dims); err != nil {
				return err
			}
		}
		return nil
	})
}

// reads: a graph with these inputs of its own has none, assigns nothing, and has the
// outputs that are wanted.
func reads(g *graph.Graph, own map[string]graph.Type, want map[string][]int) error {
	var got []string
	for _, o := range g.Outputs() {
		got = append(got, o.Name)
	}
	slices.Sort(got)
	switch names := slices.Sorted(maps.Keys(want)); {
	case len(own) > 0:
		return fmt.Errorf("the graph reads the inputs %q, which nobody fills", slices.Sorted(maps.Keys(own)))
	case len(g.Assigns()) > 0:
		return fmt.Errorf("the graph assigns %d variables: want none, as it trains nothing", len(g.Assigns()))
	case !slices.Equal(got, names):
		return fmt.Errorf("the graph has the outputs %q: want %q", got, names)
	}
	return nil
}

// finite: a result has this shape, and numbers.
func finite(name string, x *exec.Tensor, dims []int) error {
	if x == nil {
		return fmt.Errorf("there is no output %s", name)
	}
	shape := x.Type.Shape.Slice()
	for i := range min(len(shape), len(dims)) {
		if dims[i] == anySize && shape[i] > 0 {
			shape[i] = anySize
		}
	}
	if !slices.Equal(shape, dims) || !x.Type.DType.IsFloat() {
		return fmt.Errorf("%s is %v, want numbers of the shape %v (%d is any)", name, x.Type, dims, anySize)
	}
	for i, v := range ddptest.Numbers(x) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("element %d of %s is %v", i, name, v)
		}
	}
	return nil
}

// apart: not all samples are alike.
func apart(name string, x *exec.Tensor) error {
	b := x.Bytes()
	row := len(b) / samples
	if bytes.Equal(b[row:], b[:len(b)-row]) {
		return fmt.Errorf("all samples of %s are alike", name)
	}
	return nil
}

// draws runs a plan: the result has this shape, is a function of the seed and, of
// samples, not alike for all. Begin sets what a user of the plan is to set.
func (u user) draws(p chain.Plan, err error, dims []int, begin func(exec.Vars) error) (e error) {
	if err != nil {
		return err
	}
	c, err := chain.New(u.backend, u.vars, p, 0)
	if err != nil {
		return err
	}
	defer func() { e = errors.Join(e, c.Close()) }()
	run := func(seed uint64) (*exec.Tensor, error) {
		if err := errors.Join(c.Reset(seed), begin(u.vars)); err != nil {
			return nil, err
		}
		return c.Continue(u.ctx, seed, nil)
	}
	first, err := run(seed)
	if err != nil {
		return err
	}
	if err := finite(p.Out, first, dims); err != nil {
		return err
	}
	if dims[0] == samples {
		if err := apart(p.Out, first); err != nil {
			return err
		}
	}
	if _, err := run(seed + 1); err != nil {
		return err
	}
	if again, err := run(seed); err != nil || !bytes.Equal(again.Bytes(), first.Bytes()) {
		return errors.Join(err, errors.New("two results of one seed differ"))
	}
	return nil
}
