package eblvm

import (
	"strings"
	"testing"

	"ebtrain/trainer/model/nn"
)

// Parameters of the published networks, from their shapes alone: the papers'
// memory (244 and 238 MiB of F32 for CIFAR-10) and depths.
func TestPublishedSizes(t *testing.T) {
	cifar := Trunk{Size: 32, Channels: 3, Width: 128, Blocks: 3}
	mnist := Trunk{Size: 32, Channels: 1, Width: 64, Blocks: 2}
	celeba := Trunk{Size: 64, Channels: 3, Width: 128, Blocks: 4}
	latent := func(t Trunk) Net { return Net{Trunk: t, Latent: 50, PosteriorWidth: 64} }
	for _, tt := range []struct {
		name             string
		trunk            Trunk
		layers, features int
	}{{"CIFAR-10", cifar, 18, 16384}, {"MNIST", mnist, 12, 8192}, {"CelebA-64", celeba, 24, 65536}} {
		layers := 0 // 3×3 convolutions in the blocks, as the papers count
		for _, p := range tt.trunk.DeclareVisible(nn.NewContext(nn.Train, 1)) {
			if strings.Contains(p.Name, ".block") && (strings.HasSuffix(p.Name, ".conv1.weight") || strings.HasSuffix(p.Name, ".conv2.weight")) {
				layers++
			}
		}
		if layers != tt.layers {
			t.Errorf("%s: %d layers, want %d", tt.name, layers, tt.layers)
		}
		f := tt.features
		model, visible := count(latent(tt.trunk).Declare), count(tt.trunk.DeclareVisible)
		if want := byHand(tt.trunk) + (f*50 + 50) + (100*f/2 + f/2); model != want {
			t.Errorf("%s: the latent variable model has %d parameters, want %d", tt.name, model, want)
		}
		if want := byHand(tt.trunk) + 3*(f+1); visible != want {
			t.Errorf("%s: the visible model has %d parameters, want %d", tt.name, visible, want)
		}
	}
	if m, v := count(latent(cifar).Declare)*4>>19, count(cifar.DeclareVisible)*4>>19; m != 2*244-1 || v != 2*238-1 {
		t.Errorf("the networks for CIFAR-10 have %.1f and %.1f MiB, want 243.5 to 244 and 237.5 to 238", float64(m)/2, float64(v)/2)
	}
	// Three convolutions and two heads on 4·4·256 features.
	want := 64*(27+1) + 128*(9*64+1) + 256*(9*128+1) + 2*(4096*50+50)
	if got := count(latent(cifar).DeclarePosterior); got != want {
		t.Errorf("the posterior has %d parameters, want %d", got, want)
	}
}

// byHand counts a trunk's parameters from the table of layers.
func byHand(t Trunk) int {
	n := t.Width * (9*t.Channels + 1)
	in := t.Width
	for _, out := range []int{2 * t.Width, 4 * t.Width, 8 * t.Width} {
		for range t.Blocks {
			n += 9*in*in + out*(9*in+1) + out*(in+1)
			in = out
		}
	}
	return n
}

// count is the number of parameters that declare declares.
func count(declare func(c *nn.Context) []nn.Param) int {
	c, n := nn.NewContext(nn.Train, 1), 0
	for _, p := range declare(c) {
		n += c.Shape(p.ID).Len()
	}
	return n
}

// Declaring leaves nothing in the program, and applying declares no more.
func TestDeclare(t *testing.T) {
	c := nn.NewContext(nn.Train, 1)
	n := Net{Trunk: Trunk{Size: 16, Channels: 1, Width: 2, Blocks: 2}, Latent: 3, PosteriorWidth: 2}
	theta, phi := n.Declare(c), n.DeclarePosterior(c)
	declared := len(c.Variables())
	if declared != len(theta)+len(phi) {
		t.Errorf("%d variables, want those of the energy and of the posterior, %d and %d", declared, len(theta), len(phi))
	}
	n.Energy(c, n.nothing(c), n.Posterior(c, n.nothing(c)).Mean)
	if got := len(c.Variables()); got != declared {
		t.Errorf("%d variables after the networks are used, want %d", got, declared)
	}
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	for i, live := range g.Live() {
		if live {
			t.Errorf("%v is live, want nothing", g.Nodes()[i].Op)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Net{Trunk: Trunk{Size: 32, Channels: 1, Width: 64, Blocks: 2}, Latent: 50, PosteriorWidth: 64}
	for name, tt := range map[string]struct {
		change func(n *Net)
		want   string
	}{
		"good":          {func(*Net) {}, ""},
		"28":            {func(n *Net) { n.Size = 28 }, "multiple of 8, and got 28x28"},
		"no size":       {func(n *Net) { n.Size = 0 }, "multiple of 8"},
		"no channels":   {func(n *Net) { n.Channels = 0 }, "colour channel"},
		"no width":      {func(n *Net) { n.Width = 0 }, "width"},
		"no blocks":     {func(n *Net) { n.Blocks = 0 }, "residual blocks"},
		"endless":       {func(n *Net) { n.Blocks = 1000 }, "residual blocks"},
		"no latent":     {func(n *Net) { n.Latent = 0 }, "latent"},
		"thin q":        {func(n *Net) { n.PosteriorWidth = 0 }, "width of the posterior"},
		"two mistakes":  {func(n *Net) { n.Latent, n.Size = 0, 9 }, "at least one latent"},
		"two mistakes ": {func(n *Net) { n.Latent, n.Size = 0, 9 }, "multiple of 8"},
	} {
		n := good
		tt.change(&n)
		err := n.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
}
