package vages

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
)

// loops is the upper loss of a GRBM of 6 + 4 units in plain loops, of one sample.
type loops struct {
	cfg Config
	w   map[string][]float64 // s, w, b and c
}

// parts are the names of θ, without "model.".
var parts = []string{"s", "w", "b", "c"}

// slope is ∇_v log p̃(v,h), for h that may be soft.
func (l loops) slope(v, h []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = -(v[i] - l.w["b"][i]) * math.Exp(-2*l.w["s"][i])
		for j := range h {
			out[i] += l.w["w"][i*len(h)+j] * h[j]
		}
	}
	return out
}

// states are all h, and the weights that p(h|v) gives them.
func (l loops) states(v []float64) (hs [][]float64, p []float64) {
	sum := 0.0
	for state := range 1 << len(l.w["c"]) {
		h, log := make([]float64, len(l.w["c"])), 0.0
		for j := range h {
			h[j] = float64(state >> j & 1)
			log += h[j] * l.w["c"][j]
			for i := range v {
				log += h[j] * l.w["w"][i*len(h)+j] * v[i]
			}
		}
		hs, p = append(hs, h), append(p, math.Exp(log))
		sum += math.Exp(log)
	}
	for i := range p {
		p[i] /= sum
	}
	return hs, p
}

// loss is that of a sample v as it is seen, with noise eps at a level sigma and the
// direction u: means are over hs with the weights p, and so is the variance, times
// unbias: 1 over all states, n/(n−1) over n particles.
func (l loops) loss(v, eps, u []float64, sigma float64, hs [][]float64, p []float64, unbias float64) (loss float64) {
	score, spread, mean := make([]float64, len(v)), 0.0, 0.0
	var as []float64
	for k, h := range hs {
		s, a := l.slope(v, h), 0.0
		for i := range s {
			score[i] += p[k] * s[i]
			a += u[i] * s[i]
		}
		as, mean = append(as, a), mean+p[k]*a
	}
	for k, a := range as {
		spread += p[k] * (a - mean) * (a - mean) * unbias
	}
	for i, s := range score {
		switch l.cfg.Objective {
		case DSM:
			s += eps[i] / l.cfg.Sigma
		case MDSM:
			s = s/sigma + eps[i]/(l.cfg.Sigma0*l.cfg.Sigma0)
		case SSM:
			loss -= u[i] * u[i] * math.Exp(-2*l.w["s"][i]) // uᵀ∇_v(uᵀ∇_v log p̃), of every h
		}
		loss += s * s / 2
	}
	if l.cfg.Objective == SSM {
		loss += spread
	}
	return loss
}

// seenBy adds to a step what its upper loss is of.
func (s *step) seenBy() {
	o := s.see(scorePlace)
	s.Output("v", o.v)
	if o.eps != 0 {
		s.Output("eps", o.eps)
	}
	if o.sigma != 0 {
		s.Output("sigma", o.sigma)
	}
	s.Output("u", s.draw(philox.Projection, scorePlace, graph.Rademacher, s.Type(o.v)))
}

// sample is number i of what seenBy gives: rows of 6, and a level.
func sample(out ddptest.Values, i int) (v, eps, u []float64, sigma float64) {
	row := func(name string) []float64 {
		if out[name] == nil {
			return make([]float64, 6)
		}
		return out[name][6*i : 6*i+6]
	}
	if levels := out["sigma"]; levels != nil {
		sigma = levels[i]
	}
	return row("v"), row("eps"), row("u"), sigma
}

// keep has a rig remember θ as it is before its step.
func (r *rig) keep(l *loops) {
	l.cfg, l.w = r.cfg, map[string][]float64{}
	r.change = func(vars exec.Vars) error {
		for i, name := range parts {
			x, err := vars.Get("model." + name)
			if err != nil {
				return err
			}
			if l.w[name] = ddptest.Numbers(x); name == "s" { // which begins at 0
				for k, noise := range ddptest.Noise(uint32(i+20), len(l.w[name])) {
					l.w[name][k] = 0.3 * noise
				}
				if err := vars.Set("model.s", ddptest.Tensor(x.Type, l.w[name])); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func scoreLosses() []Objective { return []Objective{DSM, MDSM, SSM} }

// The loss of the exact marginal is that of its score summed over all states, and the
// gradient of its surrogate is the loss's by central differences of that sum.
func TestExactGradientByDifferences(t *testing.T) {
	const n, eps = 3, 1e-5
	for _, o := range scoreLosses() {
		r := rig{cfg: tinyUnits(func(c *Config) { c.Objective, c.Estimator, c.Sigma, c.Sigma0 = o, Exact, 0.6, 0.8 }), batch: n}
		var l loops
		r.keep(&l)
		out := r.run(t, func(s *step) {
			s.seenBy()
			surrogate, loss := s.upper(s.estimate(nil))
			s.Output("loss", loss)
			s.gradients(s.Mean(surrogate))
		})
		each := func(i int) float64 {
			v, e, u, sigma := sample(out, i)
			hs, p := l.states(v)
			return l.loss(v, e, u, sigma, hs, p, 1)
		}
		mean := func() (sum float64) {
			for i := range n {
				sum += each(i) / n
			}
			return sum
		}
		for i, got := range out["loss"] {
			if want := each(i); !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Errorf("%s: the loss of sample %d is %v, want %v", o, i, got, want)
			}
		}
		for _, name := range parts {
			want := make([]float64, len(l.w[name]))
			for k, x := range l.w[name] {
				l.w[name][k] = x + eps
				up := mean()
				l.w[name][k] = x - eps
				want[k] = (up - mean()) / (2 * eps)
				l.w[name][k] = x
			}
			if err := ddptest.Near(out["model."+name], want, 1e-6); err != nil {
				t.Errorf("%s: the gradient in %s: %v", o, name, err)
			}
		}
	}
}

// The loss that VaGES reports is that of its particles: the score is their mean, and
// the curve of sliced score matching has the variance that a sample of L says.
func TestLossOfParticles(t *testing.T) {
	const n, particles = 2, 3
	for _, o := range scoreLosses() {
		r := rig{cfg: tinyUnits(func(c *Config) { c.Objective, c.Particles, c.Sigma, c.Sigma0 = o, particles, 0.6, 0.8 }), batch: n}
		var l loops
		r.keep(&l)
		out := r.run(t, func(s *step) {
			s.seenBy()
			e := s.estimate(s.phi.P)
			_, loss := s.upper(e)
			s.Output("loss", loss)
			v := s.see(scorePlace).v
			s.Output("h", s.particles(e.(variational).infer(s.drawer, v), v, scorePlace).h)
		})
		for i, got := range out["loss"] {
			hs := slices.Collect(slices.Chunk(out["h"][4*particles*i:4*particles*(i+1)], 4))
			v, e, u, sigma := sample(out, i)
			want := l.loss(v, e, u, sigma, hs, []float64{1. / 3, 1. / 3, 1. / 3}, particles/(particles-1.))
			if !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Errorf("%s: the loss of sample %d is %v, want %v", o, i, got, want)
			}
		}
	}
}

// The curve of sliced score matching has the variance of a sample of L particles, of two
// too; one has none.
func TestCurveOfFewParticles(t *testing.T) {
	curve := func(particles int) []float64 {
		cfg := tinyUnits(func(c *Config) { c.Objective, c.Particles, c.WithoutCovariance = SSM, particles, true })
		out := rig{cfg: cfg, batch: 2}.run(t, func(s *step) {
			v := s.see(scorePlace).v
			u := s.StopGrad(s.Cos(s.Scale(v, 7)))
			e := variational{s.phi.P}
			got, slope := e.curve(s.drawer, v, u)
			c := s.particles(e.infer(s.drawer, v), v, scorePlace)
			p := s.probe(v, c, s.drawer.theta)
			a := p.along(p.logp, u)
			off := s.Sub(got, s.Mean(p.along(a, u), 1)) // the variance
			s.Output("off", off)
			s.Output("a", a)
			s.Output("slope", slope)
		})
		for i, off := range out["off"] {
			a := out["a"][particles*i : particles*(i+1)]
			mean, want := 0.0, 0.0
			for _, x := range a {
				mean += x / float64(particles)
			}
			for _, x := range a {
				want += (x - mean) * (x - mean) / math.Max(1, float64(particles-1))
			}
			if !(math.Abs(off-want) <= 1e-9*(1+want)) || !(math.Abs(out["slope"][i]-mean) <= 1e-9*(1+math.Abs(mean))) {
				t.Errorf("%d particles: a variance of %v, want %v; a mean of %v, want %v", particles, off, want, out["slope"][i], mean)
			}
		}
		return out["off"]
	}
	if off := curve(2); slices.Max(off) < 1e-6 {
		t.Errorf("two particles do not differ: %v", off)
	}
	curve(1)
}

// The steps of the posterior have a rate of their own, and without one that of the
// model: Adam's at its step t is lr/(1 − β₁ᵗ).
func TestRates(t *testing.T) {
	for posterior, lower := range map[float64]float64{0.05: 0.05, 0: 0.03} {
		c := tinyUnits(func(c *Config) { c.LR, c.PosteriorLR, c.LowerSteps = 0.03, posterior, 2 })
		for i, want := range []float64{lower / 0.1, lower / 0.19, 0.03 / 0.1} {
			if got := c.rates(i, 0)[0]; !(math.Abs(got/want-1) <= 1e-6) {
				t.Errorf("step %d with --posterior-lr %v has the rate %v, want %v", i, posterior, got, want)
			}
		}
	}
}

// What is said of data that are held out pairs each sample with the next, and the last
// with the first.
func TestHeldOutPairs(t *testing.T) {
	const n = 3
	cfg := tinyUnits(func(c *Config) { c.Objective, c.Estimator = KSD, Exact })
	m := cfg.Model()
	vars := trained(t, m)
	x := rig{cfg: cfg, batch: n}.data()
	g, err := m.(algo.Losing).Loss(n)
	got := asked(t, vars, ddptest.Values{algo.InputImages: x, algo.InputKey: {testSeed, 0, 0}}, g, err)[algo.OutputLoss]
	l := loops{cfg, map[string][]float64{}}
	for _, name := range parts {
		value, err := vars.Get("model." + name)
		if err != nil {
			t.Fatal(err)
		}
		l.w[name] = ddptest.Numbers(value)
	}
	score := func(v []float64) []float64 {
		out := make([]float64, len(v))
		hs, p := l.states(v)
		for k, h := range hs {
			for i, s := range l.slope(v, h) {
				out[i] += p[k] * s
			}
		}
		return out
	}
	for i := range n {
		a, b := x[6*i:6*i+6], x[6*((i+1)%n):6*((i+1)%n)+6]
		if want := stein(a, b, score(a), score(b), cfg.Bandwidth); !(math.Abs(got[i]-want) <= 1e-4*(1+math.Abs(want))) {
			t.Errorf("sample %d: got %v, want %v", i, got[i], want)
		}
	}
}

// MDSM's loss is reported times σ₀⁴, too, behind the loss itself.
func TestScaledLoss(t *testing.T) {
	r := rig{cfg: tinyUnits(func(c *Config) { c.Objective, c.Sigma0 = MDSM, 0.8 }), batch: 4}
	if name := r.cfg.Model().Report()[1].Name; name != "scaled" {
		t.Errorf("the second number is %s", name)
	}
	report := r.run(t, (*step).build)[algo.OutputReport]
	if err := ddptest.Near(report[1:2], []float64{report[0] * math.Pow(0.8, 4)}, 1e-5); err != nil || report[0] == 0 {
		t.Errorf("%v: %v", report, err)
	}
}
