package latent

import (
	"errors"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/setting"
)

// Kind says which model is trained.
type Kind string

const (
	// GRBM is the Gaussian restricted Boltzmann machine with a linear posterior;
	// h are Bernoulli units [ALGORITHMS.md §2.2].
	GRBM Kind = "grbm"
	// EBLVM is the deep model with a convolutional posterior; h are Gaussian
	// [ALGORITHMS.md §2.3].
	EBLVM Kind = "eblvm"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{GRBM, EBLVM} }

// Net are the sizes of the model. Those from Width on are the EBLVM's.
type Net struct {
	Kind    Kind
	C, H, W int // of a sample
	Hidden  int // d_h
	Width   int // channels of the first layer
	Depth   int // k: 6k convolutions
	// PosteriorWidth are the channels of the posterior's first layer.
	PosteriorWidth int
}

// Bounds of what a graph can hold.
const (
	maxHidden = 1 << 16
	maxWidth  = 1 << 12
	maxDepth  = 32
)

// Settings adds what a user may change.
func (n *Net) Settings(s *setting.Set) {
	setting.Word(s, "model", &n.Kind, Kinds(), "the model: grbm (Bernoulli latents, linear posterior) or eblvm (deep, Gaussian latents, convolutional posterior)")
	s.Int("hidden", &n.Hidden, 1, maxHidden, "d_h, latent units")
	s.Int("width", &n.Width, 1, maxWidth, "eblvm: channels of its first layer (64 or 128 in the paper)")
	s.Int("depth", &n.Depth, 1, maxDepth, "eblvm: k, which gives 6k convolutional layers")
	s.Int("posterior-width", &n.PosteriorWidth, 1, maxWidth, "eblvm: channels of the posterior's first layer (64 in the paper)")
	setting.For(s, "model", &n.Kind, EBLVM, "width", "depth", "posterior-width")
}

// Validate says what is wrong with sizes that fit their data.
func (n Net) Validate() error {
	if err := setting.OneOf("model", n.Kind, Kinds()); err != nil {
		return err
	}
	if n.C < 1 || n.H < 1 || n.W < 1 {
		return fmt.Errorf("want samples of at least one value, got %dx%dx%d", n.C, n.H, n.W)
	}
	switch {
	case n.Kind == EBLVM && n.H != n.W:
		return fmt.Errorf("--model eblvm takes square pictures, got %dx%d", n.H, n.W)
	case n.Kind == EBLVM:
		return n.EBLVM().Validate()
	}
	return n.GRBM().Validate()
}

// CheckDivergence says that the lower level cannot minimise d.
func (n Net) CheckDivergence(d Divergence) error {
	if n.Kind == GRBM && d == Fisher {
		return errors.New("--lower fisher needs a gradient in the latents, and those of --model grbm are Bernoulli: say --lower kl, or --model eblvm")
	}
	return nil
}

// Picture is the shape of a sample in the data, (C, H, W).
func (n Net) Picture() graph.Shape { return graph.D(n.C, n.H, n.W) }

// GRBM are the sizes of the Gaussian restricted Boltzmann machine.
func (n Net) GRBM() grbm.Size { return grbm.Size{Visible: n.C * n.H * n.W, Hidden: n.Hidden} }

// Machine is the machine of these sizes.
func (n Net) Machine() grbm.Machine { return grbm.Machine{Size: n.GRBM(), Picture: n.Picture()} }

// EBLVM are the sizes of the deep model's networks.
func (n Net) EBLVM() eblvm.Net {
	return eblvm.Net{Trunk: eblvm.Trunk{Size: n.H, Channels: n.C, Width: n.Width, Blocks: n.Depth}, Latent: n.Hidden, PosteriorWidth: n.PosteriorWidth}
}

// Model is the model of valid sizes. Samples of Bernoulli units are soft, at a
// temperature.
func (n Net) Model(temperature float64) Model {
	if n.Kind == EBLVM {
		return Networks{n.EBLVM()}
	}
	return Units{n.GRBM(), temperature}
}
