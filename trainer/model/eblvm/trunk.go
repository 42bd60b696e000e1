// Package eblvm are the networks of the deep energy-based latent variable model,
// as several methods train it, and those of the visible energy-based model that
// it is compared with [ALGORITHMS.md §2.3, as baofff/BiSM and zengyi-li/MDSM
// build them].
//
// With pictures v (B, Channels, Size, Size) in [0, 1], latents h (B, Latent) and
// a residual trunk t:
//
//	f = linear(t(v)),  E(v,h) = ‖ELU(linear(f + h, h))‖²
//	q(h|v) = N(mean(v), diag exp(2·log std(v))), a convolutional network of its own
//	E(v) = (a·t(v))(b·t(v)) + c·t(v)², the visible model's quadratic head
//
// Networks read the newest values of their variables. To evaluate one at other
// values, as an unrolled optimiser has made them, declare it and use
// nn.Context.With:
//
//	phi := net.DeclarePosterior(c)
//	c.With(phi, values, func() { q = net.Posterior(c, v) })
//
// Values of this package are plain and may be used from any goroutine.
package eblvm

import (
	"errors"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// The scopes of the variables: θ, the energy, and φ, the posterior.
const (
	Scope          = "model"
	PosteriorScope = "posterior"
)

// Trunk are the sizes of the residual network that both energies begin with.
type Trunk struct {
	Size     int // height and width of the pictures, a multiple of 8
	Channels int // of the pictures
	Width    int // c: the levels have 2c, 4c and 8c channels; 64 for MNIST, 128 for CIFAR-10
	Blocks   int // k, residual blocks of a level: 2, 3 or 4 make 12, 18 or 24 layers
}

// maxBlocks bounds what is a typing mistake.
const maxBlocks = 32

// Validate says what is wrong with the sizes.
func (t Trunk) Validate() error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	want(t.Size >= 8 && t.Size%8 == 0, "the residual energy takes square pictures whose size is a multiple of 8, and got %dx%d: pad or resize the pictures", t.Size, t.Size)
	want(t.Channels >= 1, "want at least one colour channel, got %d", t.Channels)
	want(t.Width >= 1, "want a width of at least 1 (64 or 128 in the paper), got %d", t.Width)
	want(t.Blocks >= 1 && t.Blocks <= maxBlocks, "want from 1 to %d residual blocks a level (2 to 4 in the paper), got %d", maxBlocks, t.Blocks)
	return errors.Join(errs...)
}

// flat is the number of features of a picture.
func (t Trunk) flat() int { return t.Size / 8 * (t.Size / 8) * 8 * t.Width }

// features are those of v, (B, flat), without activation.
func (t Trunk) features(c *nn.Context, v graph.ID) graph.ID {
	x := conv3("conv", t.Channels, t.Width, false).Apply(c, v)
	in := t.Width
	for i, out := range []int{2 * t.Width, 4 * t.Width, 8 * t.Width} {
		for j := range t.Blocks {
			c.Scope(fmt.Sprintf("level%d.block%d", i+1, j+1), func() { x = block(c, x, in, out, j == 0) })
			in = out
		}
	}
	return c.Reshape(x, graph.D(c.Batch(v), t.flat()))
}

// block is ELU → C3 without bias → ELU → C3, beside C1; both halve the picture
// where down says so.
func block(c *nn.Context, x graph.ID, in, out int, down bool) graph.ID {
	y := conv3("conv1", in, in, true).Apply(c, c.Elu(x, 1))
	y = conv3("conv2", in, out, false).Apply(c, c.Elu(y, 1))
	if down {
		x, y = halve(c, x), halve(c, y)
	}
	return c.Add(y, nn.Conv2d{Name: "shortcut", In: in, Out: out, Kernel: 1, Stride: 1}.Apply(c, x))
}

// halve is the mean of each 2×2 square.
func halve(c *nn.Context, x graph.ID) graph.ID { return c.AvgPool2D(x, graph.SquareWindow(2, 2, 0)) }

func conv3(name string, in, out int, noBias bool) nn.Conv2d {
	return nn.Conv2d{Name: name, In: in, Out: out, Kernel: 3, Stride: 1, Pad: 1, NoBias: noBias}
}

// nothing is a picture of zeros, to declare the variables of a network by
// building it: nothing uses what comes out, so it is no part of the program.
func (t Trunk) nothing(c *nn.Context) graph.ID {
	return c.Zeros(graph.T(c.DType, 1, t.Channels, t.Size, t.Size))
}

// VisibleEnergy is E(v) of the visible model, (B): three linear maps to numbers,
// a, b and c, of the trunk's features x, (a·x)(b·x) + c·x², each with a bias.
func (t Trunk) VisibleEnergy(c *nn.Context, v graph.ID) (e graph.ID) {
	c.Scope(Scope, func() {
		x := t.features(c, v)
		number := func(name string, x graph.ID) graph.ID {
			return nn.Linear{Name: name, In: t.flat(), Out: 1}.Apply(c, x)
		}
		a, b := number("head.a", x), number("head.b", x)
		e = c.Reshape(c.Add(c.Mul(a, b), number("head.c", c.Square(x))), graph.D(c.Batch(v)))
	})
	return e
}

// DeclareVisible declares the variables of VisibleEnergy.
func (t Trunk) DeclareVisible(c *nn.Context) []nn.Param {
	t.VisibleEnergy(c, t.nothing(c))
	return c.Params(Scope)
}
