package bism

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
)

// The hypergradient along a random direction in θ against central differences
// of fourth order of J(θ, φᴺ(θ)). The EBLVM's are over a shorter way: the
// derivative of its ELU's derivative jumps, and no jump is to be on it.
func TestHypergradientAgainstDifferences(t *testing.T) {
	far := map[latent.Kind]float64{latent.GRBM: 1e-4, latent.EBLVM: 1e-6}
	all := cases(0, 1, 5)
	for _, o := range []Objective{SSM, MDSM} {
		all = append(all, newRig(tinyUnits(func(c *Config) { c.Objective, c.Unroll = o, 3 }), 8))
	}
	for _, r := range all {
		r.batch = 4
		t.Run(label(r.cfg), func(t *testing.T) {
			grads := r.hyper(t, 1, algo.AllReduced)
			slope, length := 0.0, 0.0
			direction := map[string][]float64{}
			for i, p := range r.begin(1).thetas {
				g := grads[algo.GradientOf(p.Name)]
				d := ddptest.Noise(uint32(50+i), len(g))
				direction[p.Name] = d
				for j := range d {
					slope += g[j] * d[j]
					length += g[j] * g[j]
				}
			}
			at := func(by float64) float64 {
				out, _, err := r.run(1, func(s *step) { s.hypergradient(algo.AllReduced) }, func(vars exec.Vars) error {
					for name, d := range direction {
						x, err := vars.Get(name)
						if err != nil {
							return err
						}
						for j, z := range d {
							x.SetAt(j, x.At(j)+by*z)
						}
						if err := vars.Set(name, x); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				return out[algo.OutputUpper][0]
			}
			h := far[r.cfg.Net.Kind]
			want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
			if miss := math.Abs(slope-want) / math.Sqrt(length); !(miss <= 1e-7) {
				t.Errorf("the gradient along a direction is %v, finite differences give %v: %.2g of its length away", slope, want, miss)
			}
		})
	}
}

// J(θ, φᴺ) has φᴺ as a number: the same as J at variables φ that are φᴺ. It would
// not be, for SSM, if ∇_v saw the data through the inner steps.
func TestUpperLossSeesSteppedPosterior(t *testing.T) {
	for _, o := range []Objective{DSM, SSM, MDSM} {
		for _, rule := range []Rule{Adam, SGD} {
			set := func(k, n int) rig {
				r := newRig(tinyUnits(func(c *Config) { c.Objective, c.Inner, c.LowerSteps, c.Unroll = o, rule, k, n }), 4)
				r.step = 0 // so that the first inner step has the same number with K = 0 and K = 2
				return r
			}
			unrolled, _, err := set(0, 2).run(1, func(s *step) { s.hypergradient(algo.AllReduced) }, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, after, err := set(2, 0).run(1, (*step).build, nil)
			if err != nil {
				t.Fatal(err)
			}
			stepped, _, err := set(2, 0).run(1, func(s *step) { s.hypergradient(algo.AllReduced) }, func(vars exec.Vars) error {
				for _, name := range []string{"posterior.weight", "posterior.bias"} {
					x, err := after.Get(name)
					if err != nil {
						return err
					}
					if err := vars.Set(name, x); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			near(t, string(o)+" "+string(rule), unrolled[algo.OutputUpper], stepped[algo.OutputUpper], 1e-12)
		}
	}
}

// A pixel that is 0 in all samples gives φ gradients of exactly 0, and Adam second moments
// of 0: what is differentiated through such a step is finite all the same.
func TestPixelThatIsNeverOn(t *testing.T) {
	r := newRig(tinyUnits(func(c *Config) { c.Objective, c.LowerSteps, c.Unroll = SSM, 0, 2 }), 4)
	r.images = r.data()
	for i := range r.images {
		if i%6 == 2 {
			r.images[i] = 0
		}
	}
	still := func(vars exec.Vars) error {
		var errs []error
		for _, name := range vars.Names() {
			if typ, _ := vars.Type(name); strings.HasPrefix(name, "adam.lower.") {
				errs = append(errs, vars.Set(name, exec.NewTensor(typ)))
			}
		}
		return errors.Join(errs...)
	}
	out, _, err := r.run(1, func(s *step) { s.hypergradient(algo.AllReduced) }, still)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range out {
		for _, g := range x {
			if math.IsNaN(g) || math.IsInf(g, 0) {
				t.Fatalf("%s is %v", name, x)
			}
		}
	}
}
