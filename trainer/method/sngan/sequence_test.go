package sngan

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// sequence trains by one small program for each update, one after the other, with
// the hinge's derivative, the optimiser, the draws and the parts of the batch in
// plain loops.
type sequence struct {
	t    *testing.T
	cfg  Config
	vars exec.Vars
	took map[string]int // updates so far, by network
	seen map[string]float64
}

// evaluate runs what build says with the variables as they are. Networks' state
// advances only where keep says so.
func (s *sequence) evaluate(keep bool, in ddptest.Values, build func(c *nn.Context)) ddptest.Values {
	s.t.Helper()
	c := context64()
	build(c)
	commit := c.Build
	if keep {
		commit = c.Commit
	}
	g, err := commit()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := ddptest.Run(g, s.vars, nil, in)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// latents are those of part k.
func (s *sequence) latents(step, n, k int, sub uint16) []float64 {
	var all []float64
	for slot := k; slot < n; slot += s.cfg.Updates {
		h := make([]float64, latent)
		philox.Name{Seed: testSeed, Purpose: philox.Latent, Sub: sub, Step: uint32(step), Sample: uint32(slot)}.Normal(h)
		all = append(all, h...)
	}
	return all
}

// adam steps a network against gradients, outputs by the parameters' names.
func (s *sequence) adam(net string, step int, grads ddptest.Values, names []string) {
	s.took[net]++
	a, t := s.cfg.Adam, float64(s.took[net])
	rate := a.LR * (1 - float64(step)/float64(s.cfg.ScheduleSteps))
	for _, name := range names {
		p, v, g := get(s.t, s.vars, name), get(s.t, s.vars, "adam."+net+"."+name+".v"), grads[name]
		for i := range p {
			v[i] = a.Beta2*v[i] + (1-a.Beta2)*g[i]*g[i]
			p[i] -= rate * g[i] / (math.Sqrt(v[i]/(1-math.Pow(a.Beta2, t))) + a.Eps)
		}
		set(s.t, s.vars, name, p)
		set(s.t, s.vars, "adam."+net+"."+name+".v", v)
	}
}

// pulled are outputs with the derivatives of Σ cotangent·logit.
func pulled(c *nn.Context, sum graph.ID, net string) (names []string) {
	ps := c.Params(net)
	for i, g := range c.Grad(sum, nn.IDs(ps)...) {
		c.Output(ps[i].Name, g)
		names = append(names, ps[i].Name)
	}
	return names
}

func (s *sequence) updateG(step, n int) {
	var names []string
	b := n / s.cfg.Updates
	out := s.evaluate(true, ddptest.Values{"h": s.latents(step, n, 0, 1)}, func(c *nn.Context) {
		logit := tiny{}.Discriminator(c, tiny{}.Generator(c, c.Input("h", graph.T(graph.F64, b, latent))))
		c.Output("logit", logit)
		names = pulled(c, c.Scale(c.Sum(logit), -1/float64(b)), "generator")
	})
	s.seen["generator"] = -average(out["logit"])
	s.adam("generator", step, out, names)
}

func (s *sequence) updateD(step, n, k int) {
	b := n / s.cfg.Updates
	in := ddptest.Values{"h": s.latents(step, n, k, 0)}
	all := pictures(step, n)
	for slot := k; slot < n; slot += s.cfg.Updates {
		in["v"] = append(in["v"], all[slot*pixels:(slot+1)*pixels]...)
	}
	logits := func(c *nn.Context) (real, fake graph.ID) {
		real = tiny{}.Discriminator(c, c.Input("v", graph.T(graph.F64, b, 1, side, side)))
		fake = tiny{}.Discriminator(c, c.StopGrad(tiny{}.Generator(c, c.Input("h", graph.T(graph.F64, b, latent)))))
		return real, fake
	}
	out := s.evaluate(false, in, func(c *nn.Context) {
		real, fake := logits(c)
		c.Output("real", real)
		c.Output("fake", fake)
	})
	loss := 0.0
	in["of real"], in["of fake"] = make([]float64, b), make([]float64, b)
	for i := range b {
		if m := 1 - out["real"][i]; m > 0 {
			loss += m / float64(b)
			in["of real"][i] = -1 / float64(b)
		}
		if m := 1 + out["fake"][i]; m > 0 {
			loss += m / float64(b)
			in["of fake"][i] = 1 / float64(b)
		}
	}
	s.seen["discriminator"], s.seen["real"], s.seen["fake"] = loss, average(out["real"]), average(out["fake"])
	var names []string
	grads := s.evaluate(true, in, func(c *nn.Context) {
		real, fake := logits(c)
		t := graph.T(graph.F64, b, 1)
		sum := c.Add(c.Sum(c.Mul(real, c.Input("of real", t))), c.Sum(c.Mul(fake, c.Input("of fake", t))))
		names = pulled(c, sum, "discriminator")
	})
	s.adam("discriminator", step, grads, names)
}

func average(x []float64) (mean float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	return mean
}

// Steps are the updates one after the other: G's with D as the step before left it,
// then n of D, each with its own pictures and latents; every weight, moment,
// statistic and spectral vector, and the report, to rounding of the draws.
func TestStepIsASequenceOfUpdates(t *testing.T) {
	const steps = 3
	for _, updates := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("n-dis %d", updates), func(t *testing.T) {
			cfg, n := tinyConfig(updates), 4*updates
			s := &sequence{t, cfg, started(t, cfg), map[string]int{}, map[string]float64{}}
			vars := started(t, cfg)
			c := context64()
			newStep(c, cfg, tiny{}, n).build()
			g, err := c.Commit()
			if err != nil {
				t.Fatal(err)
			}
			for step := range steps {
				out, err := ddptest.Run(g, vars, nil, inputs(cfg, step, n))
				if err != nil {
					t.Fatal(err)
				}
				s.updateG(step, n)
				for k := range updates {
					s.updateD(step, n, k)
				}
				for i, name := range algo.Names(cfg.Report()) {
					want, ok := s.seen[name]
					if got := out[algo.OutputReport][i]; ok && !(math.Abs(got-want) <= 1e-6*(1+math.Abs(want))) {
						t.Errorf("step %d: %s is %v, want %v", step, name, got, want)
					}
				}
			}
			if len(vars.Names()) != len(s.vars.Names()) || s.took["discriminator"] != steps*updates || s.took["generator"] != steps {
				t.Fatalf("%d variables after %v updates, want %d", len(vars.Names()), s.took, len(s.vars.Names()))
			}
			before := started(t, cfg)
			for _, name := range vars.Names() {
				got := get(t, vars, name)
				if err := ddptest.Near(got, get(t, s.vars, name), 1e-6); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if len(got) > 1 && ddptest.Near(got, get(t, before, name), 1e-9) == nil { // a vector of one is ±1
					t.Errorf("%s has not moved", name)
				}
			}
		})
	}
}

// The loss in plain loops, and its derivative by central differences, on both
// sides of the corners.
func TestHinge(t *testing.T) {
	const n, h = 6, 1e-6
	real, fake := []float64{-2, -0.5, 0.3, 0.99, 1.01, 3}, []float64{-3, -1.01, -0.99, -0.2, 0.4, 2}
	loss := func(real, fake []float64) (sum float64) {
		for i := range real {
			sum += (max(0, 1-real[i]) + max(0, 1+fake[i])) / n
		}
		return sum
	}
	c := context64()
	r, f := c.Input("real", graph.T(graph.F64, n, 1)), c.Input("fake", graph.T(graph.F64, n, 1))
	l := hinge(c, r, f)
	c.Output("loss", l)
	grads := c.Grad(l, r, f)
	c.Output("of real", grads[0])
	c.Output("of fake", grads[1])
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, ddptest.NewVars(), nil, ddptest.Values{"real": real, "fake": fake})
	if err != nil {
		t.Fatal(err)
	}
	if want := loss(real, fake); !(math.Abs(out["loss"][0]-want) <= 1e-12) {
		t.Errorf("loss %v, want %v", out["loss"][0], want)
	}
	for i := range n {
		for name, x := range map[string][]float64{"of real": real, "of fake": fake} {
			at := x[i]
			x[i] = at + h
			up := loss(real, fake)
			x[i] = at - h
			want := (up - loss(real, fake)) / (2 * h)
			x[i] = at
			if got := out[name][i]; !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("slope %s %d is %v, want %v", name, i, got, want)
			}
		}
	}
}
