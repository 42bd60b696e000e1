// Package chain runs samplers with state: a few variables, and stages of equal
// transitions, each a small program that reads the variables and assigns them.
// What would be thousands of copies in one graph (Gibbs sampling, annealed
// Langevin dynamics, annealed importance sampling) is one program run thousands
// of times.
//
// The variables lie beside the model's, under names of their own; they are never
// part of the model. Random numbers of a transition are named by the seed and the
// transition's number over all stages, so a chain is the same however it is cut
// into stages, and the first samples of a longer one are those of a shorter one.
//
// A Chain belongs to one goroutine, and must not run while a program of the
// model's does.
package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Prefix begins the name of every variable of a plan, so that none is taken for
// one of the model's.
const Prefix = "chain."

// Var is a variable of a plan, of zeros: (Prefix + name) with its type, so that
// plans of several sizes can lie beside one model.
func Var(name string, t graph.Type) nn.Variable {
	return nn.Variable{Name: Prefix + name + " " + t.String(), Type: t, Role: nn.Buffer}
}

// InputKey is the input of a transition that names its draws: graph.KeyType,
// {seed, number of the transition over all stages, 0}.
const InputKey = "key"

// Plan is what is to be run.
type Plan struct {
	// Vars are the state; their names begin with Prefix. Each starts from its
	// initial value under the seed.
	Vars   []nn.Variable
	Stages []Stage
	Out    string // the variable that is the result
}

// Stage is one transition, run several times.
type Stage struct {
	Name  string       // for errors: "gibbs"
	Graph *graph.Graph // reads the model's variables and the plan's, and assigns the plan's
	Times int
	// Feed finds the transition's own inputs of its program. What it returns fills
	// them for transition i of the stage, from 0. May be nil.
	Feed func(exec.Program) func(i int)
}

// Transitions is how many there are over all stages.
func (p Plan) Transitions() (n int) {
	for _, s := range p.Stages {
		n += s.Times
	}
	return n
}

// Validate says what is wrong with the plan.
func (p Plan) Validate() error {
	own := map[string]bool{}
	for _, v := range p.Vars {
		if !strings.HasPrefix(v.Name, Prefix) {
			return fmt.Errorf("chain: variable %q: want a name that begins with %q", v.Name, Prefix)
		}
		own[v.Name] = true
	}
	if !own[p.Out] {
		return fmt.Errorf("chain: the result %q is none of the plan's variables", p.Out)
	}
	for _, s := range p.Stages {
		if err := s.validate(own); err != nil {
			return fmt.Errorf("chain: stage %s: %w", s.Name, err)
		}
	}
	return nil
}

// validate allows a stage to assign the plan's own variables, and no other: the
// model stays as it is.
func (s Stage) validate(own map[string]bool) error {
	if s.Times < 0 {
		return fmt.Errorf("want at least 0 transitions, got %d", s.Times)
	}
	for _, a := range s.Graph.Assigns() {
		if leaf, ok := s.Graph.Nodes()[s.Graph.NodeOf(a.Var)].Op.(graph.Leaf); !ok || !own[leaf.Name] {
			return fmt.Errorf("assigns %q, which is none of the plan's variables", leaf.Name)
		}
	}
	return nil
}

// Chain is a compiled plan.
type Chain struct {
	plan     Plan
	vars     exec.Vars
	programs []exec.Program
	feeds    []func(i int)
}

// New compiles a plan against the variables of a model, among which its own are
// set. The intermediate values of a program may take maxBytes (exec.Options), 0 is any.
func New(b exec.Backend, model exec.Vars, p Plan, maxBytes int64) (*Chain, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c := &Chain{plan: p, vars: model}
	if err := c.Reset(0); err != nil {
		return nil, err
	}
	for _, s := range p.Stages {
		program, err := b.Compile(s.Graph, exec.Options{Name: s.Name, Vars: model, MaxBytes: maxBytes})
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		feed := func(int) {}
		if s.Feed != nil {
			feed = s.Feed(program)
		}
		c.programs, c.feeds = append(c.programs, program), append(c.feeds, feed)
	}
	return c, nil
}

// Reset sets the state to its initial values under a seed.
func (c *Chain) Reset(seed uint64) error {
	for _, v := range c.plan.Vars {
		if err := c.vars.Set(v.Name, v.Value(seed)); err != nil {
			return fmt.Errorf("chain: %w", err)
		}
	}
	return nil
}

// Step is told before each transition, and at the end, how many are done, and of how many.
type Step func(done, of int)

// Run starts from the initial values and runs all stages; it returns the result,
// which is the caller's. Each may be nil.
func (c *Chain) Run(ctx context.Context, seed uint64, each Step) (*exec.Tensor, error) {
	if err := c.Reset(seed); err != nil {
		return nil, err
	}
	return c.Continue(ctx, seed, each)
}

// Continue runs all stages from the state as it is: variables that the caller has
// set since New or Reset.
func (c *Chain) Continue(ctx context.Context, seed uint64, each Step) (*exec.Tensor, error) {
	done, of := 0, c.plan.Transitions()
	for k, s := range c.plan.Stages {
		key := c.programs[k].Input(InputKey)
		for i := range s.Times {
			if each != nil {
				each(done, of)
			}
			if key != nil {
				copy(key.I64(), []int64{int64(seed), int64(done), 0})
			}
			c.feeds[k](i)
			if err := exec.Run(ctx, c.programs[k]); err != nil {
				return nil, fmt.Errorf("%s, transition %d: %w", s.Name, i, err)
			}
			done++
		}
	}
	if each != nil {
		each(done, of)
	}
	return c.vars.Get(c.plan.Out)
}

// Close releases the programs.
func (c *Chain) Close() error {
	var errs []error
	for _, p := range c.programs {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Run compiles a plan, runs it once and releases it.
func Run(ctx context.Context, b exec.Backend, model exec.Vars, p Plan, seed uint64) (*exec.Tensor, error) {
	c, err := New(b, model, p, 0)
	if err != nil {
		return nil, err
	}
	out, err := c.Run(ctx, seed, nil)
	return out, errors.Join(err, c.Close())
}
