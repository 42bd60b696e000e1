package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nets"
)

// defaultSteps are the steps of a run without --preset.
const defaultSteps = 1000

// presetHelp is the --preset that lists them all.
const presetHelp = "help"

// start are the settings that the flags change: those of --preset, with the
// networks of --net if it is given too, or without --preset those that the
// paper uses with --net.
func (o *options) start(fs *pflag.FlagSet, otherwise bidvl.Preset, out io.Writer) (bidvl.Preset, error) {
	net := fs.Changed("net")
	if net && !slices.Contains(nets.Names(), o.settings.Net) {
		return otherwise, cliflag.Usage("unknown --net %q: want one of %s", o.settings.Net, strings.Join(nets.Names(), ", "))
	}
	if o.preset == presetHelp {
		return otherwise, listPresets(out)
	}
	p, err := otherwise, error(nil)
	switch {
	case o.preset != "":
		if p, err = bidvl.PresetNamed(o.preset); err != nil {
			return p, cliflag.Usage("--preset: %w (--preset help describes them)", err)
		}
		if net {
			p.Config.Net, err = nets.Named(o.settings.Net)
		}
	case net:
		p, err = bidvl.PresetFor(o.settings.Net)
		p.Steps = defaultSteps
	}
	return p, err
}

// listPresets shows the presets, a line each.
func listPresets(out io.Writer) error {
	for _, p := range bidvl.Presets() {
		if _, err := fmt.Fprintf(out, "%-21s %s; batch %d, %d steps\n", p.Name, p.About, p.Batch, p.Steps); err != nil {
			return err
		}
	}
	return cliflag.ErrHelp
}

// defineModel adds the flags of the model, whose defaults are in o.model.
func (o *options) defineModel(fs *pflag.FlagSet) {
	m := &o.model
	fs.IntVar(&m.Net.Width, "width", m.Net.Width, "base width of the networks (64 in the paper)")
	fs.IntVar(&m.Net.Latent, "latent", m.Net.Latent, "size of the latent vector")
	fs.BoolVar(&m.Net.PlainShortcut, "plain-shortcut", m.Net.PlainShortcut, "residual networks: shortcuts get x, as in SNGAN, not relu(x) as in the released code")

	fs.StringVar((*string)(&m.Order), "order", string(m.Order), "which level is updated first: upper-lower (as the released code) or lower-upper (as the paper's Algorithm 1)")
	fs.IntVar(&m.LowerSteps, "lower-steps", m.LowerSteps, "N, steps of the lower level per step")
	fs.BoolVar(&m.FreshLatent, "fresh-latent", m.FreshLatent, "draw new latents for the lower level")
	fs.StringVar((*string)(&m.LatentTerm), "latent-term", string(m.LatentTerm), "latent term: offset (the paper's formal version), not-offset or none")
	fs.StringVar((*string)(&m.UpperLoss), "upper-loss", string(m.UpperLoss), "loss of the energy net: difference, or hinge for residual networks")
	fs.StringVar((*string)(&m.LowerLevel), "lower-level", string(m.LowerLevel), "divergence of the lower level: symmetric, or canonical (an ablation that is expected to diverge)")
	fs.StringVar((*string)(&m.Ratio), "ratio", string(m.Ratio), "what weighs each picture's reconstruction and prior terms besides r': constant, sigmoid (the paper's bias term) or clamp")
	fs.BoolVar(&m.Undecoupled, "undecoupled", m.Undecoupled, "give the energy net the latents too (an ablation, convolutional networks)")
	fs.Float64Var(&m.VAEWeight, "vae-weight", m.VAEWeight, "r', weight of the reconstruction and prior terms")
	fs.StringVar(&o.latentWeight, "latent-weight", showWeight(m.LatentWeight), "weight of the latent term; auto is 1/latent")
	fs.Float64Var(&m.Upper.LR, "lr-energy", m.Upper.LR, "Adam's learning rate for the energy net")
	fs.Float64Var(&m.Lower.LR, "lr", m.Lower.LR, "Adam's learning rate for the inference net, and for the generator without --lr-generator")
	if m.Generator != nil {
		o.lrGenerator = m.Generator.LR
	}
	fs.Float64Var(&o.lrGenerator, "lr-generator", o.lrGenerator, "Adam's learning rate for the generator, in an optimiser of its own; 0 is none of its own")
	fs.Float64Var(&m.Upper.Beta1, "beta1", m.Upper.Beta1, "Adam's beta1")
	fs.Float64Var(&m.Upper.Beta2, "beta2", m.Upper.Beta2, "Adam's beta2")
	fs.Float64Var(&m.Upper.Decay, "lr-decay", m.Upper.Decay, "factor on the learning rates after each epoch")
	fs.Float64Var(&m.Lower.WeightDecay, "weight-decay", m.Lower.WeightDecay, "L2 weight decay of the inference net and the generator")
}

// share gives all optimisers what the flags say of all of them, and the
// generator its own if it has a rate.
func (o *options) share() {
	m := &o.model
	m.Lower.Beta1, m.Lower.Beta2, m.Lower.Decay = m.Upper.Beta1, m.Upper.Beta2, m.Upper.Decay
	m.Generator = nil
	if o.lrGenerator != 0 {
		g := m.Lower
		g.Name, g.LR = "generator", o.lrGenerator
		m.Generator = &g
	}
}

// checkChoices reports the first word that is not one of its flag's.
func (o *options) checkChoices() error {
	m := o.model
	for _, err := range []error{
		choice("--order", m.Order, bidvl.Orders()),
		choice("--latent-term", m.LatentTerm, bidvl.LatentTerms()),
		choice("--upper-loss", m.UpperLoss, bidvl.UpperLosses()),
		choice("--lower-level", m.LowerLevel, bidvl.LowerLevels()),
		choice("--ratio", m.Ratio, bidvl.Ratios()),
		choice("--on-bad-data", o.onBadData, []string{badStop, badSkip}),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func choice[T ~string](flag string, got T, values []T) error {
	if slices.Contains(values, got) {
		return nil
	}
	return cliflag.Usage("unknown %s %q: want %s", flag, string(got), bidvl.Choices(values))
}

// autoWeight is the --latent-weight that is 1/latent.
const autoWeight = "auto"

// showWeight is a latent weight as its flag takes it.
func showWeight(w float64) string {
	if w == bidvl.DefaultLatentWeight {
		return autoWeight
	}
	return strconv.FormatFloat(w, 'g', -1, 64)
}

// readWeight sets the latent weight from its flag.
func (o *options) readWeight() error {
	if o.latentWeight == autoWeight {
		o.model.LatentWeight = bidvl.DefaultLatentWeight
		return nil
	}
	w, err := strconv.ParseFloat(o.latentWeight, 64)
	if err != nil || !(w >= 0 && w <= math.MaxFloat32) {
		return cliflag.Usage("want --latent-weight of at least 0, and finite in float32, or %s for 1/latent, got %s", autoWeight, o.latentWeight)
	}
	o.model.LatentWeight = w
	return nil
}
