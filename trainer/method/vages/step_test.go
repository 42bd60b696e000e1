package vages

import (
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm/grbmtest"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/score"
)

// byHand is G(θ, φ) at a place of the step by its definition: the mean divergence at v
// with noise of the place's own, of MDSM's level and of DSM's, Fisher's of MDSM over that.
func (s *step) byHand(place int) graph.ID {
	n := s.Batch(s.data)
	eps := s.Draw(s.key, graph.Normal, philox.Perturb, uint16(place), s.Type(s.data))
	v := s.Add(s.data, s.Scale(eps, s.cfg.Sigma))
	if s.cfg.Objective == MDSM {
		v = s.Add(s.data, s.Mul(eps, score.Along(s.Context, s.levels, eps)))
	}
	q := s.model.Infer(s.Context, s.phi.P, v)
	h := q.Sample(s.Context, s.Draw(s.key, q.Dist(), philox.Hidden, uint16(place), graph.T(s.DType, n, s.cfg.Net.Hidden)))
	each := s.cfg.Lower.Lower(s.Context, s.model, s.theta.P, q, v, h)
	if s.cfg.Objective == MDSM && s.cfg.Lower == latent.Fisher {
		each = s.Div(each, s.levels)
	}
	return s.Mean(each)
}

// set gives variables these values.
func set(vars exec.Vars, all ddptest.Values) error {
	for name, x := range all {
		typ, _ := vars.Type(name)
		if err := vars.Set(name, ddptest.Tensor(typ, x)); err != nil {
			return err
		}
	}
	return nil
}

// adam is step t, from 1, of Adam at a rate in all: variables of these gradients and their
// moments, which an optimiser of that name keeps.
func adam(all, grads ddptest.Values, c Config, name string, rate float64, t int) {
	for of, gs := range grads {
		m, v := all["adam."+name+"."+of+".m"], all["adam."+name+"."+of+".v"]
		for i, g := range gs {
			m[i] = c.Beta1*m[i] + (1-c.Beta1)*g
			v[i] = c.Beta2*v[i] + (1-c.Beta2)*g*g
			mean, square := m[i]/(1-math.Pow(c.Beta1, float64(t))), v[i]/(1-math.Pow(c.Beta2, float64(t)))
			all[of][i] -= rate * mean / (math.Sqrt(square) + 1e-8)
		}
	}
}

// A step is K steps of the posterior, each with noise and latents of its own, from what the
// last one has left, and then one of the model along the gradient with the posterior that
// they leave; the report has the losses of the last ones.
func TestStepIsItsParts(t *testing.T) {
	for name, cfg := range map[string]Config{
		"machine":           tinyUnits(func(c *Config) { c.LowerSteps = 2 }),
		"machine, many":     tinyUnits(func(c *Config) { c.Objective, c.LowerSteps = MDSM, 2 }),
		"deep":              tinyNetworks(func(c *Config) { c.LowerSteps, c.ScheduleSteps = 2, 10 }),
		"deep, left as is":  tinyNetworks(func(c *Config) { c.LowerSteps = 0 }),
		"deep, no own rate": tinyNetworks(func(c *Config) { c.LowerSteps, c.PosteriorLR, c.ScheduleSteps = 1, 0, 10 }),
	} {
		t.Run(name, func(t *testing.T) {
			const at = 3
			r := rig{cfg: cfg, batch: 3, step: at}
			var all, got ddptest.Values
			r.change = func(vars exec.Vars) error { all = grbmtest.Variables(t, vars); return nil }
			r.after = func(vars exec.Vars) error { got = grbmtest.Variables(t, vars); return nil }
			report := r.run(t, (*step).build)[algo.OutputReport]

			r.after, r.change = nil, func(vars exec.Vars) error { return set(vars, all) }
			rate, lower := cfg.Rate(), cfg.Rate()
			if cfg.PosteriorLR != 0 {
				lower.Base = cfg.PosteriorLR
			}
			k := cfg.LowerSteps
			var loss float64
			for i := range k {
				grads := r.run(t, func(s *step) {
					g := s.byHand(3 + i)
					s.Output("loss", g)
					for j, g := range s.Grad(g, s.phi.P...) {
						s.Output(s.phis[j].Name, g)
					}
				})
				loss = grads["loss"][0]
				delete(grads, "loss")
				adam(all, grads, cfg, "lower", lower.Rate(at), at*k+i+1)
			}
			grads := r.run(t, func(s *step) {
				surrogate, losses := s.upper(variational{s.phi.P})
				s.Output("loss", s.Mean(losses))
				for j, g := range s.Grad(s.Mean(surrogate), s.theta.P...) {
					s.Output(s.thetas[j].Name, g)
				}
			})
			upper := grads["loss"][0]
			delete(grads, "loss")
			adam(all, grads, cfg, "upper", rate.Rate(at), at+1)

			for name, want := range all {
				if err := ddptest.Near(got[name], want, 1e-6); err != nil { // rates are float32
					t.Errorf("%s: %v", name, err)
				}
			}
			for i, name := range algo.Names(cfg.Model().Report()) {
				want, known := map[string]float64{"upper": upper, "lower": loss}[name]
				if known && !(math.Abs(report[i]-want) <= 1e-6*(1+math.Abs(want))) {
					t.Errorf("the report has %s of %v, want %v", name, report[i], want)
				}
			}
		})
	}
}

// fed is a program that has the input of rates alone.
type fed struct {
	exec.Program
	rates *exec.Tensor
}

func (f fed) Input(string) *exec.Tensor { return f.rates }

// The rates of a step are those of its number: of the posterior's step 2·7 + 1 and the one
// after it, then of the model's step 8.
func TestRatesOfALaterStep(t *testing.T) {
	c := tinyNetworks(func(c *Config) {
		c.LowerSteps, c.LR, c.PosteriorLR, c.ScheduleSteps, c.Beta1, c.Beta2 = 2, 0.03, 0.05, 14, 0.9, 0.95
	})
	p := fed{rates: exec.NewTensor(graph.T(graph.F32, 3, 2))}
	c.Model().Feeder(p)(7, 1)
	half := func(rate float64) float64 { return (rate + 1e-6) / 2 } // of the cosine's 14 steps
	got := ddptest.Numbers(p.rates)
	for i, want := range []struct {
		rate float64
		step float64
	}{{half(0.05), 15}, {half(0.05), 16}, {half(0.03), 8}} {
		first, second := want.rate/(1-math.Pow(0.9, want.step)), 1/math.Sqrt(1-math.Pow(0.95, want.step))
		if !(math.Abs(got[2*i]/first-1) <= 1e-6) || !(math.Abs(got[2*i+1]/second-1) <= 1e-6) {
			t.Errorf("rates %d are %v, want %v and %v", i, got[2*i:2*i+2], first, second)
		}
	}
}
