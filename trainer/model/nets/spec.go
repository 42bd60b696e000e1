package nets

import (
	"fmt"
	"strings"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Networks are the energy net, the inference net and the generator of a
// family, for one choice of sizes.
type Networks interface {
	// Energy is E: v → energy, (N, 1); logit ranks like it, without ties.
	Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID)
	// Inference is Q: v → (μ, log σ²), both (N, Latent).
	Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID)
	// Generator is G: h → v.
	Generator(c *nn.Context, h graph.ID) (v graph.ID)
}

// Joint are networks with an energy net of images and latents together.
type Joint interface {
	Networks
	// JointEnergy is E: (v, h) → energy, (N, 1). It has the scope of Energy; a
	// model uses one of the two.
	JointEnergy(c *nn.Context, v, h graph.ID) (logit, energy graph.ID)
}

// Family is a kind of networks.
type Family string

const (
	ConvFamily   Family = "conv"
	ResNetFamily Family = "resnet"
)

// Spec are the family and the sizes of networks, as config.json keeps them.
type Spec struct {
	Family   Family
	Size     int // height and width of the images
	Channels int // colour channels
	Width    int // base width, 64 in the papers
	Latent   int // size of the latent vector
	// PlainShortcut is ResNet's; the convolutional networks have no shortcuts.
	PlainShortcut bool `json:",omitempty"`
	// BoundedVariance is Conv's; that of the residual networks is bounded.
	BoundedVariance bool `json:",omitempty"`
}

// published are the networks of the papers, at their sizes.
func published() []Spec {
	of := func(f Family, size, latent int) Spec {
		return Spec{Family: f, Size: size, Channels: 3, Width: 64, Latent: latent}
	}
	return []Spec{of(ConvFamily, 32, 100), of(ConvFamily, 64, 100), of(ResNetFamily, 32, 128), of(ResNetFamily, 128, 128)}
}

// Names are the networks of the papers, as Named takes them.
func Names() (names []string) {
	for _, s := range published() {
		names = append(names, s.Name())
	}
	return names
}

// Named are the networks of that name, at the papers' sizes.
func Named(name string) (Spec, error) {
	for _, s := range published() {
		if s.Name() == name {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("unknown networks %q: want one of %s", name, strings.Join(Names(), ", "))
}

// Name is the family and the size of the images: conv32.
func (s Spec) Name() string { return fmt.Sprintf("%s%d", s.Family, s.Size) }

// Build are the networks, with sizes that make sense.
func (s Spec) Build() (Networks, error) {
	switch s.Family {
	case ConvFamily:
		if s.PlainShortcut {
			return nil, fmt.Errorf("the %s networks have no shortcuts, so none can be plain: leave out --%s", s.Name(), plainShortcut)
		}
		n := Conv{Size: s.Size, Channels: s.Channels, Width: s.Width, Latent: s.Latent, BoundedVariance: s.BoundedVariance}
		return n, n.Validate()
	case ResNetFamily:
		if s.BoundedVariance {
			return nil, fmt.Errorf("the variance of the %s networks' latents is bounded as it is: leave out --%s", s.Name(), boundedVariance)
		}
		n := ResNet{Size: s.Size, Channels: s.Channels, Width: s.Width, Latent: s.Latent, PlainShortcut: s.PlainShortcut}
		return n, n.Validate()
	}
	return nil, fmt.Errorf("unknown family of networks %q: want %s or %s", s.Family, ConvFamily, ResNetFamily)
}

// Validate says what is wrong with the sizes.
func (s Spec) Validate() error {
	_, err := s.Build()
	return err
}
