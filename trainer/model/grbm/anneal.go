package grbm

import (
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// settling is how many sweeps chains make that begin at data, before they go back.
const settling = 100

// anneal is annealed importance sampling [Neal 2001; ALGORITHMS.md §2.2] from the
// machine with W = c = 0, whose log Z₀ is known, to the whole one, along
// machines with βW and βc, β = k/steps. Every chain takes, for k = 0 … steps−1,
//
//	log w ← log w + Fₖ(v) − Fₖ₊₁(v),  v ← one Gibbs sweep v → h → v at βₖ₊₁
//
// from log w = log Z₀ and v ~ N(b, σ²). The result is log w of each chain, in
// float64: ⟨w⟩ estimates Z without bias.
//
// Back, it goes the same way from β = 1 to 0, from log w = −log Z₀ and the pictures that
// are given, after some sweeps of the whole machine: of samples of the machine ⟨w⟩
// estimates 1/Z without bias, so log Z is a bound from below one way and from above the
// other, in the mean [Burda, Grosse and Salakhutdinov 2015]. Chains that begin at data
// also tell of what the others never reach.
func (m Machine) anneal(o algo.LogZOptions) (chain.Plan, error) {
	if o.Chains < 1 || o.Steps < 1 {
		return chain.Plan{}, fmt.Errorf("grbm: annealed importance sampling has nothing to average with %d chains of %d steps: want at least 1 of both", o.Chains, o.Steps)
	}
	v := chain.Var("ais.v", m.floats(o.Chains, m.Visible))
	logw := chain.Var("ais.logw", graph.T(graph.F64, o.Chains))
	s := stages{machine: m}
	begin := func(c *nn.Context, g Gibbs, sign float64) {
		logz := c.Shift(g.wide(c).gaussian(c), float64(m.Hidden)*math.Ln2)
		c.Assign(c.Var(logw.Name, logw.Type), c.BroadcastTo(c.Scale(logz, sign), logw.Type.Shape))
	}
	if o.Back {
		s.add("weights", 1, nil, func(c *nn.Context, g Gibbs) { begin(c, g, -1) })
		s.add("settle", settling, nil, func(c *nn.Context, g Gibbs) {
			now := c.Var(v.Name, v.Type)
			c.Assign(now, g.FromVisible(c, 1, now))
		})
	} else {
		s.add("base", 1, nil, func(c *nn.Context, g Gibbs) {
			c.Assign(c.Var(v.Name, v.Type), g.Visible(c, 0, c.Zeros(m.floats(o.Chains, m.Hidden))))
			begin(c, g, 1)
		})
	}
	s.add("anneal", o.Steps, betas(o.Steps, o.Back), func(c *nn.Context, g Gibbs) {
		oldV, oldW := c.Var(v.Name, v.Type), c.Var(logw.Name, logw.Type)
		gain, next := g.rung(c, c.Input(inputBetas, m.floats(2)), oldV)
		c.Assign(oldW, c.Add(oldW, gain))
		c.Assign(oldV, next)
	})
	return chain.Plan{Vars: []nn.Variable{v, logw}, Stages: s.list, Out: logw.Name}, s.err
}

// inputBetas is the input of a rung, {βₖ, βₖ₊₁}; back, {βₖ, βₖ₋₁}.
const inputBetas = "betas"

// betas fills it for rung k of so many.
func betas(steps int, back bool) func(exec.Program) func(k int) {
	return func(p exec.Program) func(int) {
		in := p.Input(inputBetas)
		return func(k int) {
			old, beta := k, k+1
			if back {
				old, beta = steps-k, steps-k-1
			}
			in.SetAt(0, float64(old)/float64(steps))
			in.SetAt(1, float64(beta)/float64(steps))
		}
	}
}

// rung is Fₖ(v) − Fₖ₊₁(v), (n) of F64, and v after a sweep at βₖ₊₁ (back: k−1). The squares
// of both free energies are equal, so with l = c + Wᵀv
//
//	Fₖ(v) − Fₖ₊₁(v) = Σⱼ softplus(βₖ₊₁lⱼ) − softplus(βₖlⱼ)
func (g Gibbs) rung(c *nn.Context, betas, v graph.ID) (gain, next graph.ID) {
	old, beta := c.Slice(betas, 0, 0, 1, 1), c.Slice(betas, 0, 1, 2, 1)
	l := g.Logits(c, v)
	hot := c.Mul(l, beta)
	each := c.Sub(c.Softplus(hot), c.Softplus(c.Mul(l, old)))
	gain = c.Sum(c.Cast(each, graph.F64), 1)
	h := Hard(c, hot, c.Draw(g.Key, graph.Uniform, g.Purpose, 0, c.Type(hot)))
	return gain, g.Visible(c, 1, c.Mul(h, beta)) // βWh = W(βh)
}
