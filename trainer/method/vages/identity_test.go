package vages

import (
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
)

// The gradient that VaGES takes the mean of particles for, summed over all states of
// the hidden units with the true posterior's weights instead, is the exact one of the
// marginal: of zᵀ∇_v log p, and of what sliced score matching adds. Without the
// covariance it is not.
func TestIdentityBySummation(t *testing.T) {
	for _, sliced := range []bool{false, true} {
		for _, form := range []Surrogate{JVP, Scores} {
			cfg := tinyUnits(func(c *Config) { c.Particles, c.Surrogate = 1<<4, form })
			r := rig{cfg: cfg, batch: 3}
			weighted := func(covariance bool) func(s *step) {
				return func(s *step) {
					v, f := s.direction(sliced)
					c := s.allStates(s.Batch(v))
					y := s.logp(s.drawer.theta, v, c)
					weight := s.StopGrad(s.Div(s.Exp(y), s.SumKeep(s.Exp(y), 1))) // p(h|v)
					g := s.each(v, c, s.drawer.theta, f)
					total := s.Sum(s.Mul(weight, g))
					if covariance {
						off := s.Sub(g, s.SumKeep(s.Mul(weight, g), 1))
						total = s.Add(total, s.Sum(s.Mul(s.Mul(weight, s.StopGrad(off)), s.logp(s.drawer.theta, s.StopGrad(v), c))))
					}
					s.gradients(total)
				}
			}
			want := r.run(t, func(s *step) {
				v, f := s.direction(sliced)
				s.gradients(s.Sum(exact().surrogate(s.drawer, v, f)))
			})
			if d := distance(r.run(t, weighted(true)), want); d > 1e-10 {
				t.Errorf("%s, sliced %v: %.2g from the exact gradient", form, sliced, d)
			}
			if d := distance(r.run(t, weighted(false)), want); d < 1e-2 {
				t.Errorf("%s, sliced %v: without the covariance only %.2g from the exact gradient", form, sliced, d)
			}
		}
	}
}

// direction is the data and a functional of the score there, linear or sliced.
func (s *step) direction(sliced bool) (v graph.ID, f functional) {
	v = s.see(scorePlace).v
	f.z = s.StopGrad(s.Sin(s.Scale(v, 5)))
	if sliced {
		f.u = s.StopGrad(s.Cos(s.Scale(v, 7)))
		f.slope = s.StopGrad(s.Sum(s.Mul(grbm.Of(s.drawer.theta).Score(s.Context, v), f.u), 1))
	}
	return v, f
}

// allStates are the 2⁴ states of the hidden units, for every sample.
func (s *step) allStates(batch int) cloud {
	t := graph.T(s.DType, 16, 4)
	state, bit := s.Iota(t, 0), s.Iota(t, 1)
	half := s.Div(state, s.Exp(s.Scale(bit, ln2))) // state / 2^bit
	h := s.Zeros(t)
	for k := 1; k < 16; k += 2 { // bit of state: half in [k, k+1)
		in := s.Sub(s.Greater(half, s.Full(t, float64(k)-1e-9)), s.Greater(half, s.Full(t, float64(k)+1-1e-9)))
		h = s.Add(h, in)
	}
	all := s.BroadcastTo(s.Reshape(h, graph.D(1, 16, 4)), graph.D(batch, 16, 4))
	return cloud{s.Reshape(all, graph.D(batch*16, 4)), 16}
}

const ln2 = 0.6931471805599453

// All surrogates have the same gradient from the same particles.
func TestSurrogatesAgree(t *testing.T) {
	for name, cfg := range map[string]Config{
		"dsm":  tinyUnits(func(c *Config) { c.Particles = 3 }),
		"mdsm": tinyUnits(func(c *Config) { c.Objective, c.Particles = MDSM, 4 }),
		"ksd":  tinyUnits(func(c *Config) { c.Objective = KSD }),
		"ssm":  tinyUnits(func(c *Config) { c.Objective, c.Particles = SSM, 3 }),
		"deep": tinyNetworks(func(c *Config) {}),
	} {
		cfg.Surrogate = JVP
		want := rig{cfg: cfg, batch: 4}.gradient(t)
		for _, other := range []Surrogate{Scores, Product} {
			if cfg.Objective == SSM && other == Product {
				continue
			}
			cfg.Surrogate = other
			if d := distance(rig{cfg: cfg, batch: 4}.gradient(t), want); d > 1e-10 {
				t.Errorf("%s: %s is %.2g from jvp", name, other, d)
			}
		}
	}
}

// With the true posterior the estimated gradient tends to the exact one as 1/√L. A
// low temperature makes particles hard, as the true posterior's are.
func TestErrorFallsWithParticles(t *testing.T) {
	for _, o := range []Objective{DSM, KSD, SSM} {
		error := func(particles int) (sum float64) {
			const trials = 6
			for i := range trials {
				cfg := tinyUnits(func(c *Config) { c.Objective, c.Particles, c.Temperature = o, particles, 1e-4 })
				got := rig{cfg: cfg, batch: 16, step: int64(i), change: posterior}.gradient(t)
				cfg.Estimator = Exact
				want := rig{cfg: cfg, batch: 16, step: int64(i), change: posterior}.gradient(t)
				sum += distance(got, want) / trials
			}
			return sum
		}
		few, many := error(8), error(512)
		t.Logf("%s: %.3f with 8, %.3f with 512", o, few, many)
		if ratio := few / many; ratio < 5 || ratio > 13 { // 8 is 1/√L
			t.Errorf("%s: an error of %.3g with 8 particles, %.3g with 512: ratio %.3g, want about 8", o, few, many, ratio)
		}
	}
}

// All surrogates train alike: from the same draws they have the same losses, step by
// step, and leave the same weights.
func TestSurrogatesTrainAlike(t *testing.T) {
	const steps = 6
	trained := func(form Surrogate) (losses []float64, left ddptest.Values) {
		r := rig{cfg: tinyUnits(func(c *Config) { c.Surrogate, c.Particles = form, 3 }), batch: 4}
		left = ddptest.Values{}
		r.change = func(vars exec.Vars) error {
			for name, x := range left {
				typ, _ := vars.Type(name)
				if err := vars.Set(name, ddptest.Tensor(typ, x)); err != nil {
					return err
				}
			}
			return nil
		}
		for r.step = range steps {
			r.after = func(vars exec.Vars) error {
				for _, name := range vars.Names() {
					x, err := vars.Get(name)
					if err != nil {
						return err
					}
					left[name] = ddptest.Numbers(x)
				}
				return nil
			}
			losses = append(losses, r.run(t, (*step).build)[algo.OutputReport]...)
		}
		return losses, left
	}
	want, weights := trained(JVP)
	if len(want) < 2*steps || want[0] == want[len(want)/steps] {
		t.Fatalf("the losses are %v", want)
	}
	for _, form := range []Surrogate{Scores, Product} {
		got, left := trained(form)
		if err := ddptest.Near(got, want, 1e-9); err != nil {
			t.Errorf("losses of %s: %v", form, err)
		}
		for name, w := range weights {
			if err := ddptest.Near(left[name], w, 1e-9); err != nil {
				t.Errorf("%s of %s: %v", name, form, err)
			}
		}
	}
}
