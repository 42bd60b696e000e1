// Package nce is noise-contrastive estimation [Gutmann and Hyvärinen 2010] and
// its variational kind [Rhodes and Gutmann 2019], training a Gaussian RBM
// [ALGORITHMS.md §2.2]: with as many noise samples y ~ N(0, I) as data v, and
//
//	r(u) = −F(u) − a − log N(u; 0, I),
//
// where a, learned with the model, stands for log Z, a step of Adam goes down the
// gradient of
//
//	−⟨log sigmoid(r(v))⟩ − ⟨log sigmoid(−r(y))⟩
//
// The variational kind (VNCE) does not use that F is known: −F(u) becomes the
// logarithm of the mean of exp(−E(u,h)) / q(h|u) over draws h ~ q(h|u), one for
// data and several for noise, which are constants. It first takes steps on q
// towards p(h|v) on data, by KL divergence with Gumbel-softmax samples.
//
// Draws of h in the mean are 0 or 1, so that it estimates exp(−F) without bias.
//
// Values of this package are plain; see package algo.
package nce

import (
	"errors"
	"fmt"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/setting"
)

// Config is everything that defines a step.
type Config struct {
	Machine     grbm.Spec
	Adam        optim.Adam // of the model and a; q's has the same numbers
	Variational bool
	// What follows is of the variational kind alone.
	PosteriorSteps int     // K, on q in each step
	NoiseLatents   int     // draws h for each noise sample
	Temperature    float64 // of the Gumbel-softmax samples
}

// most bounds the steps on q, which are all in the graph of a step, and the draws
// for each noise sample.
const most = 1000

// Method is noise-contrastive estimation.
func Method() algo.Method {
	return algo.Method{
		Name: "nce", About: "noise-contrastive estimation (NCE, VNCE) of a Gaussian RBM",
		Presets: []algo.Preset{
			{Name: "nce-board", About: "checkerboard, NCE", Config: board(false), Batch: 100, Steps: 100_000},
			{Name: "vnce-board", About: "checkerboard, variational NCE", Config: board(true), Batch: 100, Steps: 100_000},
			{Name: "vnce-frey", About: "Frey faces or other pictures, variational NCE", Config: frey(), Batch: 100, Steps: 20_000},
		},
		Decode: algo.Decoder[Config]("nce"),
	}
}

// board is the checkerboard's column of the settings [ALGORITHMS.md §2.2]. It
// takes vectors of any length.
func board(variational bool) *Config {
	return with(grbm.Spec{C: 1, H: 1, Hidden: 4}, variational, 1e-3)
}

// frey is the column of the Frey faces. It takes pictures of any size.
func frey() *Config { return with(grbm.Spec{Hidden: 400}, true, 2e-4) }

func with(machine grbm.Spec, variational bool, rate float64) *Config {
	return &Config{
		Machine:     machine,
		Adam:        optim.Adam{Name: "model", LR: rate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 1},
		Variational: variational, PosteriorSteps: 5, NoiseLatents: 5, Temperature: 0.1,
	}
}

// Clone is a copy.
func (c *Config) Clone() algo.Config { own := *c; return &own }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Machine.Settings(s)
	s.Place(setting.Losses)
	s.Bool("variational", &c.Variational, "estimate free energies with an approximate posterior q (VNCE)")
	s.Int("posterior-steps", &c.PosteriorSteps, 0, most, "VNCE: steps on q in each step, K")
	s.Int("noise-latents", &c.NoiseLatents, 1, most, "VNCE: draws h ~ q(h|y) for each noise sample y")
	s.Float("temperature", &c.Temperature, setting.Positive, "VNCE: temperature of the Gumbel-softmax samples in the steps on q")
	s.Place(setting.Optimisers)
	c.Adam.Settings(s)

	s.While(func() bool { return !c.Variational }, "NCE, which has no posterior", "--variational", "posterior-steps", "noise-latents", "temperature")
	s.While(func() bool { return c.PosteriorSteps == 0 }, "--posterior-steps 0", "--posterior-steps 1 or more", "temperature")
}

// Fit takes pictures of any size as vectors, unless the config is one for vectors.
func (c *Config) Fit(d data.Schema) error {
	if err := (algo.Kinds{Algo: "nce", Pictures: "vnce-frey"}).FitVectors(c.Machine.C, c.Machine.H, d); err != nil {
		return err
	}
	return c.Machine.Fit(d)
}

// Validate says everything that is wrong.
func (c *Config) Validate() error {
	errs := []error{c.Machine.Validate(), c.Adam.Validate(), setting.Positive.Check("temperature", c.Temperature)}
	if c.PosteriorSteps < 0 || c.PosteriorSteps > most {
		errs = append(errs, fmt.Errorf("want from 0 to %d steps on the posterior, got %d", most, c.PosteriorSteps))
	}
	if c.NoiseLatents < 1 || c.NoiseLatents > most {
		errs = append(errs, fmt.Errorf("want from 1 to %d latents for each noise sample, got %d", most, c.NoiseLatents))
	}
	return errors.Join(errs...)
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return Model{c.Machine.Machine(), *c} }

// posterior is the optimiser of q.
func (c *Config) posterior() optim.Adam {
	a := c.Adam
	a.Name = "posterior"
	return a
}
