package workload

import (
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Adam's constants in both workloads, those of BiSM's code.
const (
	beta1, beta2 = 0.9, 0.95
	epsilon      = 1e-8
)

// rates are {lr/(1−β₁ᵗ), 1/√(1−β₂ᵗ)} of Adam's step number t, from 1.
func rates(lr float64, t int64) [2]float64 {
	return [2]float64{lr / (1 - math.Pow(beta1, float64(t))), 1 / math.Sqrt(1-math.Pow(beta2, float64(t)))}
}

// state is a list of parameters with Adam's moments, as values of a graph.
type state struct{ p, m, v []graph.ID }

// declare reads the parameters ps with their moments.
func declare(c *nn.Context, ps []nn.Param) state {
	s := state{p: nn.IDs(ps)}
	for _, p := range ps {
		s.m = append(s.m, c.Moment("adam."+p.Name+".m", c.Shape(p.ID)))
		s.v = append(s.v, c.Moment("adam."+p.Name+".v", c.Shape(p.ID)))
	}
	return s
}

// keep makes s the new values of ps and their moments.
func (s state) keep(c *nn.Context, ps []nn.Param) {
	for i, p := range ps {
		c.Set(p.Name, s.p[i])
		c.Set("adam."+p.Name+".m", s.m[i])
		c.Set("adam."+p.Name+".v", s.v[i])
	}
}

// detached is s as constants.
func (s state) detached(c *nn.Context) state {
	stop := func(in []graph.ID) []graph.ID {
		out := make([]graph.ID, len(in))
		for i, id := range in {
			out[i] = c.StopGrad(id)
		}
		return out
	}
	return state{stop(s.p), stop(s.m), stop(s.v)}
}

// step is one step of Adam, which can be differentiated; row i of schedule
// (rows, 2) is its rates.
//
//	m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,  p ← p − rate·m/(√v·correct + ε)
func (s state) step(c *nn.Context, grads []graph.ID, schedule graph.ID, i int) state {
	entry := func(j int) graph.ID {
		return c.Reshape(c.Slice(c.Slice(schedule, 0, i, i+1, 1), 1, j, j+1, 1), graph.D())
	}
	rate, correct := entry(0), entry(1)
	var next state
	for k, g := range grads {
		m := c.Add(c.Scale(s.m[k], beta1), c.Scale(g, 1-beta1))
		v := c.Add(c.Scale(s.v[k], beta2), c.Scale(c.Square(g), 1-beta2))
		move := c.Div(c.Mul(m, rate), c.Shift(c.Mul(c.Sqrt(v), correct), epsilon))
		next.p, next.m, next.v = append(next.p, c.Sub(s.p[k], move)), append(next.m, m), append(next.v, v)
	}
	return next
}
