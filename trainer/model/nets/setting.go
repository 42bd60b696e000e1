package nets

import (
	"fmt"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/setting"
)

// What methods that train these networks tell their users of them.

// Bounds of sizes: what is larger can only be a typing mistake.
const (
	maxWidth  = 1 << 14
	maxLatent = 1 << 20
)

// Names of settings that one family of networks alone has.
const (
	boundedVariance = "bounded-variance"
	plainShortcut   = "plain-shortcut"
)

// Settings adds what a user may change.
func (s *Spec) Settings(set *setting.Set) {
	least := 1
	if s.Family == ConvFamily {
		least = 4
	}
	sizes(set, least, &s.Width, &s.Latent, &s.PlainShortcut)
	set.Bool(boundedVariance, &s.BoundedVariance, "convolutional networks: the variances of q(h|v) are below 1, as in the paper's text and the residual networks, not unbounded as in the released code")
	set.Then(func() error {
		if s.Family == ConvFamily && s.Width%4 != 0 {
			return fmt.Errorf("want --width of a multiple of 4, got %d", s.Width)
		}
		return nil
	})
}

// Steadier is the flag with which the divergence from the prior does not jump, "" if the
// variances of latents are bounded.
func (s Spec) Steadier() string {
	if s.Family == ConvFamily && !s.BoundedVariance {
		return "--" + boundedVariance
	}
	return ""
}

// EnergyAbove0 says that no energy of the networks is below 0.
func (s Spec) EnergyAbove0() bool { return s.Family == ConvFamily }

// Settings adds what a user may change.
func (n *ResNet) Settings(set *setting.Set) {
	sizes(set, 1, &n.Width, &n.Latent, &n.PlainShortcut)
	set.Bool("nearest", &n.Nearest, "the generator doubles pictures by copying pixels, as the first SNGAN, instead of interpolating")
	set.Bool("no-output-bias", &n.NoOutputBias, "the discriminator's last layer has no bias, as that of the first SNGAN")
}

func sizes(set *setting.Set, least int, width, latent *int, plain *bool) {
	set.Int("width", width, least, maxWidth, "base width of the networks (64 in the paper)")
	set.Int("latent", latent, 1, maxLatent, "size of the latent vector")
	set.Bool(plainShortcut, plain, "residual networks: shortcuts get x, as in SNGAN, not relu(x) as in the released code")
}

// Fit takes the number of channels from the data, whose size must be the
// networks'.
func (s *Spec) Fit(d data.Schema) error { return fit(s.Name(), s.Size, &s.Channels, d) }

// Fit takes the number of channels from the data, whose size must be the
// networks'.
func (n *ResNet) Fit(d data.Schema) error { return fit(n.Name(), n.Size, &n.Channels, d) }

func fit(net string, size int, channels *int, d data.Schema) error {
	if d.H != size || d.W != size {
		return &algo.Misfit{What: "--net " + net, H: size, W: size}
	}
	*channels = d.C
	return nil
}

// Takes says which pictures the networks take.
func (s Spec) Takes() algo.Inputs { return pictures(s.Channels, s.Size) }

// Takes says which pictures the networks take.
func (n ResNet) Takes() algo.Inputs { return pictures(n.Channels, n.Size) }

func pictures(channels, size int) algo.Inputs {
	return algo.Inputs{Shape: graph.D(channels, size, size), Range: loader.Symmetric}
}

// Name is the family and the size of the images: resnet32.
func (n ResNet) Name() string { return fmt.Sprintf("%s%d", ResNetFamily, n.Size) }
