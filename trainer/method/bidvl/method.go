package bidvl

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"ebtrain/data"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/setting"
)

// Method is BiDVL for the programs.
func Method() algo.Method {
	m := algo.Method{Name: "bidvl", About: "bi-level doubly variational learning: energy net, inference net, generator", Nets: nets.Names()}
	for _, p := range Presets() {
		c := p.Config
		m.Presets = append(m.Presets, algo.Preset{Name: p.Name, About: p.About, Net: c.Net.Name(), Config: &c, Batch: p.Batch, Steps: p.Steps})
	}
	m.Decode = func(raw json.RawMessage) (algo.Config, error) {
		var c Config
		err := json.Unmarshal(raw, &c)
		return &c, err
	}
	return m
}

// Clone is a copy that shares nothing with c.
func (c *Config) Clone() algo.Config {
	d := *c
	if c.Generator != nil {
		g := *c.Generator
		d.Generator = &g
	}
	return &d
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return *c }

// SetNet takes the networks of that name at the paper's sizes.
func (c *Config) SetNet(name string) (err error) {
	c.Net, err = nets.Named(name)
	return err
}

// Fit takes the number of channels from the data, and replaces every default by
// its value.
func (c *Config) Fit(s data.Schema) error {
	if err := c.Net.Fit(s); err != nil {
		return err
	}
	*c = c.Resolved()
	return nil
}

// Takes says which pictures the networks take.
func (c Config) Takes() algo.Inputs {
	return c.Net.Takes()
}

// Steadier is that of the networks.
func (c Config) Steadier() string { return c.Net.Steadier() }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	usual := *c
	s.Place(setting.Trained)
	c.Net.Settings(s)
	c.lossSettings(s)
	c.optimiserSettings(s)
	s.Then(func() error { return c.ofNoUse(usual) })
}

// ofNoUse reports a weight that was changed of a term that there is not. A weight of 0
// says the same as leaving the term out.
func (c *Config) ofNoUse(usual Config) error {
	if c.LatentTerm == NoLatent && c.LatentWeight != usual.LatentWeight && c.LatentWeight != 0 {
		return fmt.Errorf("--latent-weight %s is of the latent term, which --latent-term %s leaves out: leave it out, or say --latent-term %s", c.showLatentWeight(usual.LatentWeight), NoLatent, Offset)
	}
	if !c.hasVAE() && c.VAEWeight != usual.VAEWeight && c.VAEWeight != 0 {
		return fmt.Errorf("--vae-weight %v is of reconstruction and prior terms, which --lower-level %s has not: leave it out, or say --lower-level %s", c.VAEWeight, Canonical, Symmetric)
	}
	return nil
}

func (c *Config) lossSettings(s *setting.Set) {
	s.Place(setting.Losses)
	usual := c.LatentWeight
	setting.Word(s, "order", &c.Order, Orders(), "which level is updated first: upper-lower (as the released code) or lower-upper (as the paper's Algorithm 1)")
	s.Int("lower-steps", &c.LowerSteps, 1, maxLowerSteps, "N, steps of the lower level per step")
	s.Bool("fresh-latent", &c.FreshLatent, "draw new latents for the lower level")
	setting.Word(s, "latent-term", &c.LatentTerm, LatentTerms(), "latent term: offset (the paper's formal version), not-offset or none")
	s.Text("latent-weight", "weight of the latent term; auto is 1/latent", func() string { return c.showLatentWeight(usual) }, c.readLatentWeight)
	setting.Word(s, "upper-loss", &c.UpperLoss, UpperLosses(), "loss of the energy net: difference, or hinge for residual networks")
	setting.Word(s, "lower-level", &c.LowerLevel, LowerLevels(), "divergence of the lower level: symmetric, or canonical (an ablation that is expected to diverge)")
	setting.Word(s, "ratio", &c.Ratio, Ratios(), "what weighs each picture's reconstruction and prior terms besides r': constant, sigmoid (the paper's bias term) or clamp")
	s.Bool("undecoupled", &c.Undecoupled, "give the energy net the latents too (an ablation, convolutional networks)")
	s.Float("vae-weight", &c.VAEWeight, setting.AtLeast0, "r', weight of the reconstruction and prior terms")
}

// optimiserSettings adds those of the optimisers. What they share is kept with
// the upper level's while it is read.
func (c *Config) optimiserSettings(s *setting.Set) {
	s.Place(setting.Optimisers)
	generator := 0.0
	if c.Generator != nil {
		generator = c.Generator.LR
	}
	s.Float("lr", &c.Lower.LR, setting.Positive, "Adam's learning rate for the inference net, and for the generator where --lr-generator is 0 (it is not in the residual networks' presets)")
	s.Float("lr-energy", &c.Upper.LR, setting.Positive, "Adam's learning rate for the energy net")
	s.Float("lr-generator", &generator, setting.AtLeast0, "Adam's learning rate for the generator, in an optimiser of its own; 0 is none of its own")
	s.Float("beta1", &c.Upper.Beta1, setting.Moment, "Adam's beta1")
	s.Float("beta2", &c.Upper.Beta2, setting.Moment, "Adam's beta2")
	s.Float("lr-decay", &c.Upper.Decay, setting.Factor, "factor on the learning rates after each epoch")
	s.Float("weight-decay", &c.Lower.WeightDecay, setting.AtLeast0, "L2 weight decay of the inference net and the generator")
	c.Upper.Limits.Settings(s, "each optimiser's gradient")
	s.Then(func() error {
		c.Lower.Beta1, c.Lower.Beta2, c.Lower.Decay = c.Upper.Beta1, c.Upper.Beta2, c.Upper.Decay
		c.Lower.Limits = c.Upper.Limits
		c.Generator = nil
		if generator != 0 {
			g := c.Lower
			g.Name, g.LR = "generator", generator
			c.Generator = &g
		}
		return nil
	})
}

// autoWeight is the --latent-weight that is 1/latent.
const autoWeight = "auto"

// showLatentWeight shows auto as its number where that is the usual weight: of a run that
// goes on, which has it resolved, so that the command line that began it changes nothing.
func (c *Config) showLatentWeight(usual float64) string {
	if c.LatentWeight == DefaultLatentWeight && c.latentWeight() != usual {
		return autoWeight
	}
	return strconv.FormatFloat(c.latentWeight(), 'g', -1, 64)
}

func (c *Config) readLatentWeight(text string) error {
	if text == autoWeight {
		c.LatentWeight = DefaultLatentWeight
		return nil
	}
	w, err := strconv.ParseFloat(text, 64)
	if err != nil || !(w >= 0 && w <= math.MaxFloat32) {
		return fmt.Errorf("want --latent-weight of at least 0, and finite in float32, or %s for 1/latent, got %s", autoWeight, text)
	}
	c.LatentWeight = w
	return nil
}
