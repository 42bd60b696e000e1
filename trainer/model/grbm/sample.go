package grbm

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// sweeps is the length of the chains of Sample [ALGORITHMS.md §2.2].
const sweeps = 1000

// Sample starts n chains from v uniform on [0, 1], makes 1,000 Gibbs sweeps, and
// gives the means E[v|h] of the last, as papers show pictures [ALGORITHMS.md §2.2].
// Of points it gives the last v: their means are as few as there are h.
func (m Machine) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	return m.gibbs(n, sweeps, m.points())
}

// SampleDrawn is Sample, but gives the last v of pictures, too.
func (m Machine) SampleDrawn(_ nn.Mode, n int) (chain.Plan, error) { return m.gibbs(n, sweeps, true) }

// gibbs makes that many sweeps, at least 1, and gives the last v drawn, or its mean.
func (m Machine) gibbs(n, sweeps int, drawn bool) (chain.Plan, error) {
	v := chain.Var("gibbs.v", m.floats(n, m.Visible))
	last := chain.Var("gibbs.last", graph.Type{DType: v.Type.DType, Shape: m.batch(n)})
	s := stages{machine: m}
	s.add("begin", 1, nil, func(c *nn.Context, g Gibbs) {
		c.Assign(c.Var(v.Name, v.Type), c.Draw(g.Key, graph.Uniform, g.Purpose, 0, v.Type))
	})
	s.add("gibbs", sweeps-1, nil, func(c *nn.Context, g Gibbs) {
		old := c.Var(v.Name, v.Type)
		c.Assign(old, g.FromVisible(c, 1, old))
	})
	s.add("last", 1, nil, func(c *nn.Context, g Gibbs) {
		h := g.Hidden(c, 0, c.Var(v.Name, v.Type))
		x := g.Mean(c, h)
		if drawn {
			x = g.Visible(c, 1, h)
		}
		c.Assign(c.Var(last.Name, last.Type), m.pictures(c, x))
	})
	return chain.Plan{Vars: []nn.Variable{v, last}, Stages: s.list, Out: last.Name}, s.err
}

// stages are those of a plan for a machine, under construction.
type stages struct {
	machine Machine
	list    []chain.Stage
	err     error // the first
}

// add adds a stage whose graph f builds.
func (s *stages) add(name string, times int, feed func(exec.Program) func(i int), f func(c *nn.Context, g Gibbs)) {
	c, p := s.machine.begin()
	f(c, Gibbs{p, c.Input(chain.InputKey, graph.KeyType), philox.Chain})
	g, err := c.Commit()
	if s.err == nil {
		s.err = err
	}
	s.list = append(s.list, chain.Stage{Name: name, Graph: g, Times: times, Feed: feed})
}
