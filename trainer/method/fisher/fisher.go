// Package fisher estimates how far a model is from data by the Fisher divergence,
// with a critic, where the truth is known [ALGORITHMS.md §3.3].
//
// The model is a Gaussian RBM that nothing trains: σ = 1 and every other parameter
// drawn from N(0, ρ²). The data are N(0, I), so the divergence is known,
//
//	D = ½⟨‖∇log p(v) − ∇log p_data(v)‖²⟩ = ½⟨‖s(v) + v‖²⟩
//
// A step of Adam goes up the critic's objective,
//
//	⟨sᵀf + tr ∂f/∂v − ½‖f‖²⟩,
//
// whose supremum over all f is D, at f = ∇log p − ∇log p_data: that of any f is at
// most D, but for the noise of finitely many samples. The trace is εᵀ(∂f/∂v)ε with ε
// of ±1 in training, and in closed form where a trained critic is asked.
//
// s is the exact score of the marginal, or the variational estimate of it (VaES), the
// mean of ∇_v log p̃(v,h) over L latents h ~ q(h|v), which are constants. q takes K
// steps towards p(h|v) before each of the critic. Then what the critic estimates is
// the divergence of that score, whose error is q's and that of L draws.
//
// Values of this package are plain; see package algo.
package fisher

import (
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Estimator says what stands for the score of the marginal.
type Estimator string

const (
	Exact       Estimator = "exact"       // the marginal's own
	Variational Estimator = "variational" // VaES
)

// Config is everything that defines a step.
type Config struct {
	Machine   grbm.Spec
	Rho       float64 // ρ, deviation of the model's parameters
	Estimator Estimator
	Adam      optim.Adam // of the critic; q's has the same numbers
	// What follows is of the variational estimate alone.
	Particles   int     // L, latents in the estimate of the score
	LowerSteps  int     // K, on q in each step
	Temperature float64 // of the Gumbel-softmax samples
}

// Bounds of what a graph can hold: the steps on q are all in the graph of a step.
const (
	mostSteps     = 1000
	mostParticles = 1000
)

func estimators() []Estimator { return []Estimator{Exact, Variational} }

// Method is the critic.
func Method() algo.Method {
	preset := func(d int) algo.Preset {
		return algo.Preset{
			Name:   fmt.Sprintf("fisher-%d", d),
			About:  fmt.Sprintf("critic of a Gaussian RBM on N(0, I), by its exact score; as published with --estimator variational (--data gauss:dim=%d,modes=1,sd=1,train=16000,val=2000,test=2000)", d),
			Config: with(d), Batch: 100, Steps: 20_000,
		}
	}
	return algo.Method{
		Name: "fisher", About: "a critic that estimates the Fisher divergence of a fixed Gaussian RBM from N(0, I)",
		Presets: []algo.Preset{preset(200), preset(500)},
		Decode:  algo.Decoder[Config]("fisher"),
	}
}

// with is the published setting of as many hidden units as there are visible ones, but
// for the estimator: published is VaES, with the particles and steps here, which the exact
// score has no use for.
func with(d int) *Config {
	return &Config{
		Machine: grbm.Spec{C: 1, H: 1, W: d, Hidden: d}, Rho: 0.2, Estimator: Exact,
		Adam:      optim.Adam{Name: "critic", LR: 2e-4, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 1},
		Particles: 1, LowerSteps: 5, Temperature: 0.1,
	}
}

// Clone is a copy.
func (c *Config) Clone() algo.Config { own := *c; return &own }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Machine.Settings(s)
	s.Float("rho", &c.Rho, setting.AtLeast0, "deviation of the model's parameters from those of N(0, I)")
	s.Place(setting.Losses)
	setting.Word(s, "estimator", &c.Estimator, estimators(), "what stands for the marginal's score: exact, or variational (VaES)")
	s.Int("particles", &c.Particles, 1, mostParticles, "variational: L, latents in the estimate of the score")
	s.Int("lower-steps", &c.LowerSteps, 0, mostSteps, "variational: K, steps on the posterior before each of the critic")
	s.Float("temperature", &c.Temperature, setting.Positive, "variational: temperature of the Gumbel-softmax samples")
	s.Place(setting.Optimisers)
	c.Adam.Settings(s)
	s.Float("lr-decay", &c.Adam.Decay, setting.Factor, "factor on the learning rates after each epoch")
	s.Then(c.Validate)
	setting.For(s, "estimator", &c.Estimator, Variational, "particles", "lower-steps", "temperature")
}

// Fit takes vectors of the preset's length.
func (c *Config) Fit(d data.Schema) error { return c.Machine.Fit(d) }

// Validate says everything that is wrong.
func (c *Config) Validate() error {
	errs := []error{
		c.Machine.Validate(), c.Adam.Validate(), setting.OneOf("estimator", c.Estimator, estimators()),
		setting.AtLeast0.Check("rho", c.Rho), setting.Positive.Check("temperature", c.Temperature),
	}
	if c.Particles < 1 || c.Particles > mostParticles {
		errs = append(errs, fmt.Errorf("want --particles from 1 to %d, got %d", mostParticles, c.Particles))
	}
	if c.LowerSteps < 0 || c.LowerSteps > mostSteps {
		errs = append(errs, fmt.Errorf("want --lower-steps from 0 to %d, got %d", mostSteps, c.LowerSteps))
	}
	return errors.Join(errs...)
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	m := Model{c.Machine.Machine(), *c}
	if c.Estimator == Variational {
		return inferring{m}
	}
	return m
}

// posterior is the optimiser of q.
func (c *Config) posterior() optim.Adam {
	a := c.Adam
	a.Name = "posterior"
	return a
}
