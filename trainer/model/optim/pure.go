package optim

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// State is parameters and their moments, as values of a graph. M and V may be
// empty where no rule reads them.
type State struct{ P, M, V []graph.ID }

// Rule is one step of an optimiser as a pure function: nothing is assigned, and
// the new state can be differentiated in whatever the old one and the gradients
// depend on.
type Rule interface {
	Step(c *nn.Context, s State, grads []graph.ID, t Rates) State
}

// Declare reads the parameters ps and their moments, which are variables named
// as Adam with that Name has them: "adam.<optimiser>.<parameter>.m" and ".v",
// below the scope of the call.
func Declare(c *nn.Context, optimiser string, ps []nn.Param) State {
	s := State{P: nn.IDs(ps)}
	c.Scope("adam."+optimiser, func() {
		for _, p := range ps {
			s.M = append(s.M, c.Moment(p.Name+".m", c.Shape(p.ID)))
			s.V = append(s.V, c.Moment(p.Name+".v", c.Shape(p.ID)))
		}
	})
	return s
}

// Keep makes s the new values of the parameters ps and, if it has moments, of
// those that Declare read in the same scope.
func (s State) Keep(c *nn.Context, optimiser string, ps []nn.Param) {
	if !s.fits(c, "keep "+optimiser, len(ps)) {
		return
	}
	for i, p := range ps {
		c.Set(p.Name, s.P[i])
	}
	c.Scope("adam."+optimiser, func() {
		for i := range s.M {
			c.Update(ps[i].Name+".m", s.M[i])
			c.Update(ps[i].Name+".v", s.V[i])
		}
	})
}

// Detached is s as constants.
func (s State) Detached(c *nn.Context) State {
	stop := func(in []graph.ID) []graph.ID {
		var out []graph.ID
		for _, id := range in {
			out = append(out, c.StopGrad(id))
		}
		return out
	}
	return State{stop(s.P), stop(s.M), stop(s.V)}
}

// fits fails unless s has n parameters, and moments for all of them or none.
func (s State) fits(c *nn.Context, what string, n int) bool {
	if len(s.P) != n || len(s.M) != len(s.V) || len(s.M) != 0 && len(s.M) != n {
		c.Fail(fmt.Errorf("%s: got %d parameters, %d and %d moments, want %d parameters, and moments of all or none", what, len(s.P), len(s.M), len(s.V), n))
		return false
	}
	return true
}

// PureAdam is the step of Adam without weight decay, with numbers equal to its
// bit for bit at equal rates:
//
//	m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  p ← p − rate·m/(√v·correct + ε)
//
// With Differentiable the root is √(v + 1e-16): the derivative of √ at exactly
// 0 is infinite, and a gradient that is 0 in one coordinate (a dead unit) would
// make every derivative through the step NaN [facebookresearch/higher#125].
type PureAdam struct {
	Beta1, Beta2, Eps float64
	Differentiable    bool
}

// guard keeps the root of a second moment, and its derivatives up to order two
// in float32, finite at 0.
const guard = 1e-16

// Validate says what is wrong with the numbers.
func (a PureAdam) Validate() error {
	switch {
	case !(a.Beta1 >= 0 && a.Beta1 < 1) || !(a.Beta2 >= 0 && a.Beta2 < 1):
		return fmt.Errorf("want Adam's betas in [0, 1), got %v and %v", a.Beta1, a.Beta2)
	case !(float32(a.Eps) > 0) || !finite(a.Eps):
		return fmt.Errorf("want Adam's epsilon above 0 in float32, got %v", a.Eps)
	}
	return nil
}

// Step is one step; s needs its moments.
func (a PureAdam) Step(c *nn.Context, s State, grads []graph.ID, t Rates) State {
	if !s.fits(c, "adam", len(grads)) {
		return s
	}
	if len(s.M) != len(grads) {
		c.Fail(fmt.Errorf("adam: the state has no moments"))
		return s
	}
	var next State
	for i, g := range grads {
		m := g
		if a.Beta1 != 0 {
			m = average(c, s.M[i], g, a.Beta1)
		}
		v := average(c, s.V[i], c.Square(g), a.Beta2)
		inRoot := v
		if a.Differentiable {
			inRoot = c.Shift(v, guard)
		}
		next.P = append(next.P, moved(c, s.P[i], m, inRoot, a.Eps, t))
		next.M, next.V = append(next.M, m), append(next.V, v)
	}
	return next
}

// Descent is plain gradient descent, p ← p − rate·g. Moments stay as they are.
type Descent struct{}

// Step is one step; s may be without moments.
func (Descent) Step(c *nn.Context, s State, grads []graph.ID, t Rates) State {
	if !s.fits(c, "descent", len(grads)) {
		return s
	}
	next := State{M: s.M, V: s.V}
	for i, g := range grads {
		next.P = append(next.P, c.Sub(s.P[i], c.Mul(g, t.Rate)))
	}
	return next
}
