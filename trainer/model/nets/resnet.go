package nets

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// ResNet are the sizes of the SNGAN residual networks for 32×32, 64×64 and
// 128×128 images [ALGORITHMS.md §1.2 (iii); those for 64×64 are Mimicry's]. ReLU
// throughout; spectral norm in E, Q and D, batch norm in G.
type ResNet struct {
	Size     int // height and width of the images: 32, 64 or 128
	Channels int // colour channels
	Width    int // base width, 64 in the paper
	Latent   int // size of the latent vector: 128
	// PlainShortcut gives the shortcut of a down block x, as Chainer's SNGAN
	// does. Otherwise it gets ReLU(x), as in the released code, where the
	// block's first ReLU works in place.
	PlainShortcut bool
	// Nearest doubles images by copying pixels, as Chainer's SNGAN does. Otherwise
	// up blocks interpolate.
	Nearest bool `json:",omitempty"`
	// NoOutputBias leaves out the bias of the discriminator's last layer, as
	// Chainer's SNGAN does.
	NoOutputBias bool `json:",omitempty"`
}

// Validate says what is wrong with the sizes.
func (n ResNet) Validate() error {
	switch {
	case n.Size != 32 && n.Size != 64 && n.Size != 128:
		return fmt.Errorf("the residual networks take 32x32, 64x64 or 128x128 images, not %dx%d", n.Size, n.Size)
	case n.Channels < 1:
		return fmt.Errorf("want at least one colour channel, got %d", n.Channels)
	case n.Width < 1:
		return fmt.Errorf("want a width of at least 1 (64 in the paper), got %d", n.Width)
	case n.Latent < 1:
		return fmt.Errorf("want a latent size of at least 1 (128 in the paper), got %d", n.Latent)
	}
	return nil
}

// stage is one residual block: its output channels and whether it changes the
// size of the image by two.
type stage struct {
	out    int
	resize bool
}

// trunk are the down blocks of E, Q and D.
func (n ResNet) trunk() []stage {
	w := n.Width
	if n.Size == 32 {
		return []stage{{2 * w, true}, {2 * w, true}, {2 * w, false}, {2 * w, false}}
	}
	falling := []stage{{w, true}, {2 * w, true}, {4 * w, true}, {8 * w, true}, {16 * w, true}}
	if n.Size == 64 {
		return falling
	}
	return append(falling, stage{16 * w, false})
}

// rises are the up blocks of G, from 4×4, and the channels they start with.
func (n ResNet) rises() (first int, outs []int) {
	w := n.Width
	switch n.Size {
	case 32:
		return 4 * w, []int{4 * w, 4 * w, 4 * w}
	case 64:
		return 16 * w, []int{8 * w, 4 * w, 2 * w, w}
	}
	return 16 * w, []int{16 * w, 8 * w, 4 * w, 2 * w, w}
}

// xavier is Glorot's uniform initialisation of a layer with a k×k kernel:
// ±gain·√(6/(fanIn + fanOut)).
func xavier(gain float64, in, out, k int) nn.Init {
	return nn.Uniform(gain * math.Sqrt(6/float64((in+out)*k*k)))
}

func conv3(name string, in, out int, spectral bool) nn.Conv2d {
	return nn.Conv2d{Name: name, In: in, Out: out, Kernel: 3, Stride: 1, Pad: 1, Spectral: spectral, Init: xavier(math.Sqrt2, in, out, 3)}
}

func conv1(name string, in, out int, spectral bool) nn.Conv2d {
	return nn.Conv2d{Name: name, In: in, Out: out, Kernel: 1, Stride: 1, Spectral: spectral, Init: xavier(1, in, out, 1)}
}

func linear(name string, in, out int, spectral, noBias bool) nn.Linear {
	return nn.Linear{Name: name, In: in, Out: out, Spectral: spectral, NoBias: noBias, Init: xavier(1, in, out, 1)}
}

// halve is the mean of each 2×2 square.
func halve(c *nn.Context, x graph.ID) graph.ID { return c.AvgPool2D(x, graph.SquareWindow(2, 2, 0)) }

// first is the block that sees the image: C3 → ReLU → C3 → pool, beside pool →
// C1.
func (n ResNet) first(c *nn.Context, x graph.ID, in, out int) graph.ID {
	y := conv3("conv1", in, out, true).Apply(c, x)
	y = conv3("conv2", out, out, true).Apply(c, c.Relu(y))
	return c.Add(halve(c, y), conv1("shortcut", in, out, true).Apply(c, halve(c, x)))
}

// down is ReLU → C3 → ReLU → C3 (→ pool), beside C1 (→ pool) where the shape
// changes. The pool comes before C1 here: a mean and a 1×1 convolution commute,
// and this way it sees a quarter of the pixels.
func (n ResNet) down(c *nn.Context, x graph.ID, in int, s stage) graph.ID {
	active := c.Relu(x)
	y := conv3("conv1", in, in, true).Apply(c, active)
	y = conv3("conv2", in, s.out, true).Apply(c, c.Relu(y))
	if !n.PlainShortcut {
		x = active
	}
	if s.resize {
		x, y = halve(c, x), halve(c, y)
	}
	if s.resize || in != s.out {
		x = conv1("shortcut", in, s.out, true).Apply(c, x)
	}
	return c.Add(y, x)
}

// up is BN → ReLU → 2× → C3 → BN → ReLU → C3, beside 2× → C1, which commute
// because the weights of an upsampled pixel add up to one: C1 comes first here
// and sees a quarter of the pixels.
func (n ResNet) up(c *nn.Context, x graph.ID, in, out int) graph.ID {
	mode := graph.Bilinear
	if n.Nearest {
		mode = graph.Nearest
	}
	double := func(x graph.ID) graph.ID { return c.Upsample2D(x, mode, 2) }
	y := c.Relu(nn.BatchNorm2d{Name: "bn1", C: in}.Apply(c, x))
	y = conv3("conv1", in, out, false).Apply(c, double(y))
	y = c.Relu(nn.BatchNorm2d{Name: "bn2", C: out}.Apply(c, y))
	y = conv3("conv2", out, out, false).Apply(c, y)
	return c.Add(y, double(conv1("shortcut", in, out, false).Apply(c, x)))
}

// features are the sums over each channel after the down blocks: (N, channels).
func (n ResNet) features(c *nn.Context, v graph.ID) (f graph.ID, channels int) {
	x, in := v, n.Channels
	for i, s := range n.trunk() {
		c.Scope(fmt.Sprintf("block%d", i+1), func() {
			if i == 0 {
				x = n.first(c, x, in, s.out)
			} else {
				x = n.down(c, x, in, s)
			}
		})
		in = s.out
	}
	return c.Sum(c.Relu(x), 2, 3), in
}

// Energy is the energy net E: v → f(v), (N, 1), with nothing after the last
// layer; logit and energy are the same.
func (n ResNet) Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID) {
	c.Scope("energy", func() {
		f, channels := n.features(c, v)
		logit = linear("out", channels, 1, true, false).Apply(c, f)
	})
	return logit, logit
}

// Discriminator is SNGAN's D: v → f(v), (N, 1), unbounded: the trunk of E with a
// name of its own.
func (n ResNet) Discriminator(c *nn.Context, v graph.ID) (logit graph.ID) {
	c.Scope("discriminator", func() {
		f, channels := n.features(c, v)
		logit = linear("out", channels, 1, true, n.NoOutputBias).Apply(c, f)
	})
	return logit
}

// Inference is the inference net Q: v → (μ, log σ²), both (N, Latent), where
// log σ² = −softplus(raw), so that σ² lies in (0, 1).
func (n ResNet) Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID) {
	c.Scope("inference", func() {
		f, channels := n.features(c, v)
		noBias := n.Size != 32
		mean = linear("mean", channels, n.Latent, true, noBias).Apply(c, f)
		logVar = c.Neg(c.Softplus(linear("logvar", channels, n.Latent, true, noBias).Apply(c, f)))
	})
	return mean, logVar
}

// Generator is the generator G: h → v, in (−1, 1).
func (n ResNet) Generator(c *nn.Context, h graph.ID) (v graph.ID) {
	c.Scope("generator", func() {
		in, outs := n.rises()
		x := linear("in", n.Latent, in*4*4, false, false).Apply(c, h)
		x = c.Reshape(x, graph.D(c.Batch(h), in, 4, 4))
		for i, out := range outs {
			c.Scope(fmt.Sprintf("block%d", i+1), func() { x = n.up(c, x, in, out) })
			in = out
		}
		x = c.Relu(nn.BatchNorm2d{Name: "bn", C: in}.Apply(c, x))
		last := nn.Conv2d{Name: "out", In: in, Out: n.Channels, Kernel: 3, Stride: 1, Pad: 1, Init: xavier(1, in, n.Channels, 3)}
		v = c.Tanh(last.Apply(c, x))
	})
	return v
}
