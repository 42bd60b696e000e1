package lebm

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// stepped runs one step of n pictures, and returns its report by name.
func (r rig) stepped(t *testing.T, n int) map[string]float64 {
	t.Helper()
	out := r.run(t, ddptest.Values{algo.InputImages: r.pictures(n)}, func(c *nn.Context) { newStep(c, r.cfg, n).build() })
	report := map[string]float64{}
	for i, c := range (model{r.cfg}).Report() {
		report[c.Name] = out[algo.OutputReport][i]
	}
	return report
}

// losses are those of both networks at given latents, which is what a step descends.
func (r rig) losses(t *testing.T, n int, after, before []float64) map[string]float64 {
	t.Helper()
	out := r.run(t, ddptest.Values{algo.InputImages: r.pictures(n), "after": after, "before": before}, func(c *nn.Context) {
		l := newLatents(c, r.cfg)
		x := c.Input(algo.InputImages, graph.Type{DType: c.DType, Shape: r.cfg.shape(n)})
		a, b := c.Input("after", l.typ(n)), c.Input("before", l.typ(n))
		c.Output(generatorNet, c.Scale(c.Sum(c.Square(c.Sub(x, l.pictures().decode(c, a)))), 1/float64(n)))
		c.Output(energyNet, c.Sub(c.Mean(r.cfg.Net.energy(c, a)), c.Mean(r.cfg.Net.energy(c, b))))
	})
	return map[string]float64{generatorNet: out[generatorNet][0], energyNet: out[energyNet][0]}
}

// chains are z⁺ and z⁻ of the step.
func (r rig) chains(t *testing.T, n int) (after, before []float64) {
	t.Helper()
	out := r.run(t, ddptest.Values{algo.InputImages: r.pictures(n)}, func(c *nn.Context) {
		s := newStep(c, r.cfg, n)
		c.Output("after", s.posterior(s.key, s.x))
		c.Output("before", s.prior(s.key, n))
	})
	return out["after"], out["before"]
}

// The gradients that a step descends are those of its losses with both chains held
// still, by central differences along a random direction of each network's weights.
func TestGradients(t *testing.T) {
	const n, eps = 2, 1e-5
	r := newRig(t, tiny(same))
	after, before := r.chains(t, n)
	start := map[string][]float64{}
	for _, name := range r.vars.Names() {
		start[name] = r.get(t, name)
	}
	report := r.stepped(t, n)
	for net, adam := range map[string]string{generatorNet: "adam.generator.", energyNet: "adam.energy."} {
		beta := r.cfg.Generator.Beta1
		slope, length := 0.0, 0.0
		direction := map[string][]float64{}
		for name := range start {
			if !strings.HasPrefix(name, net+".") {
				continue
			}
			direction[name] = ddptest.Noise(uint32(len(name)), len(start[name]))
			for i, m := range r.get(t, adam+name+".m") { // after one step, m = (1 − β₁)g
				slope += m / (1 - beta) * direction[name][i]
				length += m * m / ((1 - beta) * (1 - beta))
			}
		}
		if !(math.Abs(math.Sqrt(length)/report[gradientOf(net)]-1) < 1e-6) {
			t.Errorf("%s: the report's gradient has length %v, and Adam's %v", net, report[gradientOf(net)], math.Sqrt(length))
		}
		at := func(eps float64) float64 {
			for name, x := range start {
				moved := slices.Clone(x)
				for i, d := range direction[name] {
					moved[i] += eps * d
				}
				r.set(t, name, moved)
			}
			return r.losses(t, n, after, before)[net]
		}
		differences := (at(eps) - at(-eps)) / (2 * eps)
		if !(math.Abs(differences-slope) <= 1e-5*(1+math.Abs(slope))) {
			t.Errorf("%s: the slope is %v, by differences %v", net, slope, differences)
		}
		for name, x := range start {
			r.set(t, name, x)
		}
		r.stepped(t, n) // the moments of the first step again
		for name, x := range start {
			if !strings.HasPrefix(name, "adam.") {
				r.set(t, name, x)
			}
		}
	}
}

// The report says what the step has: losses and energies at its chains, and their
// norms.
func TestReport(t *testing.T) {
	const n = 3
	r := newRig(t, tiny(same))
	after, before := r.chains(t, n)
	want := r.losses(t, n, after, before)
	norm := func(z []float64) (sum float64) {
		d := r.cfg.Net.Latent
		for i := range n {
			squares := 0.0
			for _, x := range z[i*d : (i+1)*d] {
				squares += x * x / float64(d)
			}
			sum += math.Sqrt(squares) / n
		}
		return sum
	}
	got := r.stepped(t, n)
	for name, w := range map[string]float64{
		reportRecon: want[generatorNet], reportEnergy: want[energyNet],
		reportPosteriorNorm: norm(after), reportPriorNorm: norm(before),
		reportEnergy + " again": got[reportPosteriorEnergy] - got[reportPriorEnergy],
	} {
		g := got[strings.TrimSuffix(name, " again")]
		if !(math.Abs(g-w) <= 1e-6*(1+math.Abs(w))) {
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
	columns := (model{r.cfg}).Report()
	for _, c := range columns {
		if want := c.Name == reportRecon || c.Name == reportEnergy; c.Shown != want {
			t.Errorf("%s is shown while it trains: %v, want %v", c.Name, c.Shown, want)
		}
	}
	if columns[posteriorNormPlace].Name != reportPosteriorNorm || columns[priorNormPlace].Name != reportPriorNorm {
		t.Errorf("the columns are %v", algo.Names(columns))
	}
}

// Chains are of the slot: a sample's latents do not depend on the others of its batch.
func TestChainsDoNotMeet(t *testing.T) {
	r := newRig(t, tiny(same))
	d := r.cfg.Net.Latent
	after, before := r.chains(t, 3)
	first, prior := r.chains(t, 1)
	if err := ddptest.Near(after[:d], first, 1e-12); err != nil {
		t.Error(err)
	}
	if err := ddptest.Near(before[:d], prior, 1e-12); err != nil {
		t.Error(err)
	}
}

// A step of lebm-svhn, 80 transitions unrolled, is a graph that is compiled in a
// fraction of a second.
func TestNodes(t *testing.T) {
	p, err := Method().Preset("lebm-svhn")
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := p.Config.Model().Step(1, p.Batch)
	if err != nil {
		t.Fatal(err)
	}
	live := 0
	for _, l := range g.Live() {
		if l {
			live++
		}
	}
	t.Logf("%d nodes, %d of them live", len(g.Nodes()), live)
	if live > 5000 {
		t.Errorf("a step has %d nodes, want at most 5,000", live)
	}
}
