// Package nets holds the networks of the papers, layer for layer
// (ALGORITHMS.md §1.2). A network is a plain struct of sizes; applying it to a
// Context emits its layers under its name.
//
// Shapes: images are (N, Channels, Size, Size) in [−1, 1], latents (N, Latent).
package nets

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Conv are the sizes of the convolutional networks for 32×32 and 64×64 images
// [ALGORITHMS.md §1.2 (i) and (ii); Han et al., BiDVL].
type Conv struct {
	Size     int // height and width of the images: 32 or 64
	Channels int // colour channels: 3, or 1 for grey
	Width    int // base width of the energy net, 64 in the paper; Q and G use three quarters of it
	Latent   int // size of the latent vector: 100

	// BoundedVariance gives Q log σ² = −softplus(raw), as the residual networks have it
	// and the paper's text says of all; in the released code it is unbounded.
	BoundedVariance bool
}

// Validate says what is wrong with the sizes.
func (n Conv) Validate() error {
	switch {
	case n.Size != 32 && n.Size != 64:
		return fmt.Errorf("the convolutional networks take 32x32 or 64x64 images, not %dx%d", n.Size, n.Size)
	case n.Channels < 1:
		return fmt.Errorf("want at least one colour channel, got %d", n.Channels)
	case n.Width < 4 || n.Width%4 != 0:
		return fmt.Errorf("want a width that is a positive multiple of 4 (64 in the paper), got %d", n.Width)
	case n.Latent < 1:
		return fmt.Errorf("want a latent size of at least 1 (100 in the paper), got %d", n.Latent)
	}
	return nil
}

// side is the base width of the inference net and the generator: 48 of 64.
func (n Conv) side() int { return n.Width * 3 / 4 }

// initial is the released code's start for every convolution: N(0, 0.02²).
var initial = nn.Normal(0.02)

// Energy is the energy net E: v → softplus(f(v)). Every layer has spectral
// norm and a bias; LeakyReLU 0.1 follows each but the last that is wider than
// 1×1 and the last of all. logit is f(v) and energy is softplus of it, both
// (N, 1).
func (n Conv) Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID) {
	c.Scope("energy", func() {
		t := n.trunk(c, v)
		t.conv(c, t.in, 1, 1, 0)
		t.activate(c)
		t.conv(c, 1, 1, 1, 0)
		logit = c.Reshape(t.x, graph.D(c.Batch(v), 1))
		energy = c.Softplus(logit)
	})
	return logit, energy
}

// chain is a run of the energy net's convolutions.
type chain struct {
	x    graph.ID
	in   int   // channels of x
	outs []int // channels after each convolution so far
}

func (t *chain) conv(c *nn.Context, out, kernel, stride, pad int) {
	t.outs = append(t.outs, out)
	t.x = nn.Conv2d{Name: fmt.Sprintf("conv%d", len(t.outs)), In: t.in, Out: out, Kernel: kernel, Stride: stride, Pad: pad,
		Spectral: true, Init: initial}.Apply(c, t.x)
	t.in = out
}

func (t *chain) activate(c *nn.Context) { t.x = c.LeakyRelu(t.x, 0.1) }

// trunk are the energy net's convolutions down to 1×1, with no activation
// after the last.
func (n Conv) trunk(c *nn.Context, v graph.ID) *chain {
	t, width := &chain{x: v, in: n.Channels}, n.Width
	for size := n.Size; size > 4; size /= 2 {
		t.conv(c, width, 3, 1, 1)
		t.activate(c)
		t.conv(c, width, 4, 2, 1)
		t.activate(c)
		width *= 2
	}
	t.conv(c, width, 3, 1, 1)
	t.activate(c)
	t.conv(c, width, 4, 1, 0)
	return t
}

// Inference is the inference net Q: v → (μ, log σ²), both (N, Latent). log σ²
// is unbounded, unless BoundedVariance.
func (n Conv) Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID) {
	c.Scope("inference", func() {
		x, in, layer := v, n.Channels, 0
		block := func(out, kernel, stride, pad int) {
			layer++
			x = nn.Conv2d{Name: fmt.Sprintf("conv%d", layer), In: in, Out: out, Kernel: kernel, Stride: stride, Pad: pad,
				NoBias: true, Init: initial}.Apply(c, x)
			x = nn.BatchNorm2d{Name: fmt.Sprintf("bn%d", layer), C: out}.Apply(c, x)
			x = c.LeakyRelu(x, 0.2)
			in = out
		}
		width := n.side()
		block(width, 3, 1, 1)
		for size := n.Size; size > 4; size /= 2 {
			width *= 2
			block(width, 4, 2, 1)
		}
		head := func(name string) graph.ID {
			y := nn.Conv2d{Name: name, In: in, Out: n.Latent, Kernel: 4, Stride: 1, Init: initial}.Apply(c, x)
			return c.Reshape(y, graph.D(c.Batch(v), n.Latent))
		}
		mean, logVar = head("mean"), head("logvar")
		if n.BoundedVariance {
			logVar = c.Neg(c.Softplus(logVar))
		}
	})
	return mean, logVar
}

// Generator is the generator G: h → v, in (−1, 1).
func (n Conv) Generator(c *nn.Context, h graph.ID) (v graph.ID) {
	c.Scope("generator", func() {
		x, in, layer := c.Reshape(h, graph.D(c.Batch(h), n.Latent, 1, 1)), n.Latent, 0
		conv := func(out, kernel, stride, pad int, noBias bool) {
			layer++
			x = nn.ConvTranspose2d{Name: fmt.Sprintf("conv%d", layer), In: in, Out: out, Kernel: kernel, Stride: stride, Pad: pad,
				NoBias: noBias, Init: initial}.Apply(c, x)
			in = out
		}
		block := func(out, stride, pad int) {
			conv(out, 4, stride, pad, true)
			x = nn.BatchNorm2d{Name: fmt.Sprintf("bn%d", layer), C: out}.Apply(c, x)
			x = c.Relu(x)
		}
		width := n.side() * n.Size / 4
		block(width, 1, 0) // 1×1 → 4×4
		block(width, 2, 1) // 8×8
		for size := 8; size < n.Size; size *= 2 {
			width /= 2
			block(width, 2, 1)
		}
		conv(n.Channels, 3, 1, 1, false)
		v = c.Tanh(x)
	})
	return v
}
