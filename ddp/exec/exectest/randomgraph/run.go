package randomgraph

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// compileLimit is the longest that compiling a program may take, hundreds of
// times what it does.
const compileLimit = 30 * time.Second

// errSlow is in the error of a compilation that did not end in time. Its
// goroutine is lost, so the hunt ends.
var errSlow = errors.New("compiling did not end in time")

// results are the outputs of all steps and the variables after them, by rank.
type results []map[string]*exec.Tensor

// inputs gives the value of a leaf.
type inputs func(rank, step int, l graph.Leaf) *exec.Tensor

// execution is a graph on some backends, one for each rank.
type execution struct {
	graph *graph.Graph
	ranks []exec.Backend
	comms []collective.Comm // nil for a world of one
	steps int
	in    inputs
	remat bool
	fixed bool // deterministic: virtual shards
	again bool // run step 0 with other inputs first, and set the variables again
}

// run runs all ranks.
func (e *execution) run() (results, error) {
	out, errs := make(results, len(e.ranks)), make([]error, len(e.ranks))
	var wg sync.WaitGroup
	for r := range e.ranks {
		wg.Go(func() {
			out[r], errs[r] = e.rank(r)
			if errs[r] != nil && e.comms != nil {
				e.comms[r].Abort(errs[r])
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

func (e *execution) rank(r int) (out map[string]*exec.Tensor, err error) {
	vars, all := e.ranks[r].NewVars(), leaves(e.graph)
	set := func() error {
		for _, l := range all {
			if l.Kind == graph.Var {
				if err := vars.Set(l.Name, e.in(r, 0, l)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := set(); err != nil {
		return nil, err
	}
	o := exec.Options{Name: "random", Vars: vars, Remat: e.remat, Deterministic: e.fixed}
	if e.comms != nil {
		if o.Comm, err = e.ranks[r].Connect(context.Background(), e.comms[r]); err != nil {
			return nil, err
		}
	}
	p, err := compile(e.ranks[r], e.graph, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	step := func(values int) error {
		for _, l := range all {
			if in := p.Input(l.Name); in != nil && l.Kind == graph.Input {
				copy(in.Bytes(), e.in(r, values, l).Bytes())
			}
		}
		return exec.Run(context.Background(), p)
	}
	if e.again {
		if err := step(7); err != nil {
			return nil, err
		}
		if err := set(); err != nil {
			return nil, err
		}
	}
	out = map[string]*exec.Tensor{}
	for s := range e.steps {
		if err := step(s); err != nil {
			return nil, err
		}
		for _, o := range e.graph.Outputs() {
			t := p.Output(o.Name)
			kept := exec.NewTensor(t.Type)
			copy(kept.Bytes(), t.Bytes())
			out[fmt.Sprintf("%s of step %d", o.Name, s)] = kept
		}
	}
	for _, name := range vars.Names() {
		if out["variable "+name], err = vars.Get(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// compile compiles within a limit.
func compile(be exec.Backend, g *graph.Graph, o exec.Options) (exec.Program, error) {
	type compiled struct {
		p   exec.Program
		err error
	}
	done := make(chan compiled, 1)
	go func() {
		p, err := be.Compile(g, o)
		done <- compiled{p, err}
	}()
	select {
	case c := <-done:
		if c.err == nil {
			if s := c.p.Stats(); s.Steps > 6*s.Nodes+50 {
				return nil, errors.Join(fmt.Errorf("%d steps for %d nodes", s.Steps, s.Nodes), c.p.Close())
			}
		}
		return c.p, c.err
	case <-time.After(compileLimit):
		return nil, fmt.Errorf("%w: %v", errSlow, compileLimit)
	}
}
