package lebm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/sentence"
)

// Shape is the layers of a generator, named for the data that the paper has it for.
type Shape string

const (
	SVHN     Shape = "svhn"     // 32×32 in four layers, from 4×4
	CIFAR10  Shape = "cifar10"  // 32×32 in four layers, from 8×8
	CelebA64 Shape = "celeba64" // 64×64 in five layers, from 4×4
)

func shapes() []Shape { return []Shape{SVHN, CIFAR10, CelebA64, LSTM} }

// Net are the networks and their sizes.
type Net struct {
	Shape    Shape
	Channels int // of pictures: 3 for colours, 1 for grey
	Latent   int // d, of the latents
	NGF      int // base width of the generator
	NEF      int // width of the energy's two hidden layers
}

// netNamed are the networks of that name at the paper's sizes.
func netNamed(name string) (Net, error) {
	n := Net{Shape: Shape(name), Channels: 3, Latent: 100, NGF: 128, NEF: 200}
	switch n.Shape {
	case SVHN:
		n.NGF = 64
	case CIFAR10:
		n.Latent = 128
	case CelebA64:
	case LSTM:
		n.Latent, n.NGF = 32, 1 // of no use to it
	default:
		return Net{}, fmt.Errorf("unknown networks %q: want one of %s", name, strings.Join(netNames(), ", "))
	}
	return n, nil
}

func netNames() []string {
	names := make([]string, len(shapes()))
	for i, s := range shapes() {
		names[i] = string(s)
	}
	return names
}

// side is the height and the width of the pictures.
func (s Shape) side() int {
	if s == CelebA64 {
		return 64
	}
	return 32
}

// Validate says what is wrong with the sizes.
func (n Net) Validate() error {
	var errs []error
	if !slices.Contains(shapes(), n.Shape) {
		errs = append(errs, fmt.Errorf("unknown networks %q: want one of %s", n.Shape, strings.Join(netNames(), ", ")))
	}
	for _, one := range []struct {
		what string
		n    int
	}{{"pictures of at least one channel", n.Channels}, {"--latent of at least 1", n.Latent}, {"--ngf of at least 1", n.NGF}, {"--nef of at least 1", n.NEF}} {
		if one.n < 1 {
			errs = append(errs, fmt.Errorf("want %s, got %d", one.what, one.n))
		}
	}
	return errors.Join(errs...)
}

// slopes of the leaky ReLUs, by the paper: of E and of G.
const (
	energyLeak    = 0.2
	generatorLeak = 0.1
)

// energy is E(z), (n), of latents (n, d): two hidden layers of nef.
func (n Net) energy(c *nn.Context, z graph.ID) (e graph.ID) {
	c.Scope(energyNet, func() {
		linear := func(name string, x graph.ID, in, out int) graph.ID {
			layer := nn.Linear{Name: name, In: in, Out: out, Init: nn.XavierNormal(in, out)}
			if n.Shape == LSTM {
				layer.Init, layer.BiasInit = nn.Uniform(sentence.Initial), nn.Uniform(sentence.Initial)
			}
			return layer.Apply(c, x)
		}
		x := c.LeakyRelu(linear("linear1", z, n.Latent, n.NEF), energyLeak)
		x = c.LeakyRelu(linear("linear2", x, n.NEF, n.NEF), energyLeak)
		e = c.Reshape(linear("linear3", x, n.NEF, 1), graph.D(c.Batch(z)))
	})
	return e
}
