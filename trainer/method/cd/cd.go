// Package cd is contrastive divergence [Hinton 2002] and its persistent kind
// [Tieleman 2008], training a Gaussian RBM [ALGORITHMS.md §2.2]: a step of Adam
// down the gradient of
//
//	⟨F(v)⟩ − ⟨F(v⁻)⟩
//
// where v⁻, a constant, is k Gibbs sweeps away from the data (CD-k), or from
// where the chains were after the step before (PCD-k).
//
// There are as many persistent chains as samples in the global batch, and chain i
// goes on with draws named by slot i. Their states h are one variable of the
// whole batch, equal on all ranks: they are saved, and a run that is resumed, on
// any number of ranks, goes on with them.
//
// Values of this package are plain; see package algo.
package cd

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
	Machine    grbm.Spec
	Persistent bool
	Sweeps     int // k, of each step
	Adam       optim.Adam
}

// mostSweeps bounds k: every sweep is in the graph of a step.
const mostSweeps = 1000

// Method is contrastive divergence.
func Method() algo.Method {
	return algo.Method{
		Name: "cd", About: "contrastive divergence (CD-k, PCD) of a Gaussian RBM",
		Presets: []algo.Preset{
			{Name: "cd-board", About: "checkerboard, CD-1", Config: board(false), Batch: 100, Steps: 100_000},
			{Name: "pcd-board", About: "checkerboard, PCD-1", Config: board(true), Batch: 100, Steps: 100_000},
			{Name: "cd-frey", About: "Frey faces or other pictures, CD-5", Config: frey(), Batch: 100, Steps: 20_000},
		},
		Decode: algo.Decoder[Config]("cd"),
	}
}

// board is the checkerboard's column of the settings [ALGORITHMS.md §2.2]. It
// takes vectors of any length.
func board(persistent bool) *Config {
	return &Config{Machine: grbm.Spec{C: 1, H: 1, Hidden: 4}, Persistent: persistent, Sweeps: 1, Adam: adam(1e-3)}
}

// frey is the column of the Frey faces. It takes pictures of any size.
func frey() *Config {
	return &Config{Machine: grbm.Spec{Hidden: 400}, Sweeps: 5, Adam: adam(2e-4)}
}

func adam(rate float64) optim.Adam {
	return optim.Adam{Name: "model", LR: rate, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 1}
}

// Clone is a copy.
func (c *Config) Clone() algo.Config { own := *c; return &own }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	c.Machine.Settings(s)
	s.Place(setting.Losses)
	s.Int("cd-steps", &c.Sweeps, 1, mostSweeps, "Gibbs sweeps of each step, the k of CD-k")
	s.Bool("persistent", &c.Persistent, "go on with the chains of the step before (PCD) instead of beginning at the data")
	s.Place(setting.Optimisers)
	c.Adam.Settings(s)
}

// Fit takes pictures of any size as vectors, unless the config is one for vectors.
func (c *Config) Fit(d data.Schema) error {
	if err := (algo.Kinds{Algo: "cd", Pictures: "cd-frey"}).FitVectors(c.Machine.C, c.Machine.H, d); err != nil {
		return err
	}
	return c.Machine.Fit(d)
}

// Validate says everything that is wrong.
func (c *Config) Validate() error {
	errs := []error{c.Machine.Validate(), c.Adam.Validate()}
	if c.Sweeps < 1 || c.Sweeps > mostSweeps {
		errs = append(errs, fmt.Errorf("want from 1 to %d Gibbs sweeps in a step, got %d", mostSweeps, c.Sweeps))
	}
	return errors.Join(errs...)
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return Model{c.Machine.Machine(), *c} }
