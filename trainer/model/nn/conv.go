package nn

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// Conv2d is a convolution with a square kernel: (N, In, H, W) → (N, Out, H', W').
// Its weight is (Out, In, Kernel, Kernel), as PyTorch's.
type Conv2d struct {
	Name                string
	In, Out             int
	Kernel, Stride, Pad int
	NoBias              bool
	Spectral            bool // divide the weight by its spectral norm
	Init                Init // of the weight; nil is PyTorch's default
}

// Apply convolves x.
func (l Conv2d) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		fanIn, conv := l.In*l.Kernel*l.Kernel, graph.NewConv(l.Kernel, l.Stride, l.Pad)
		y = c.weighted(layer{
			shape: graph.D(l.Out, l.In, l.Kernel, l.Kernel), init: orDefault(l.Init, fanIn), spectral: l.Spectral,
			pixels: c.pixels(x, conv.Window), by: func(w graph.ID) graph.ID { return c.Conv2D(x, w, conv) },
		})
		if !l.NoBias {
			y = c.addChannelBias(y, l.Out, fanIn)
		}
	})
	return y
}

// pixels are those of an output of windows of x; none if x is no image.
func (c *Context) pixels(x graph.ID, w graph.Window) int {
	if c.Err() != nil || c.Shape(x).Rank() != 4 {
		return 0
	}
	height, width := w.Out(c.Shape(x).At(2), c.Shape(x).At(3))
	return height * width
}

// ConvTranspose2d is a transposed convolution with a square kernel:
// (N, In, H, W) → (N, Out, (H−1)·Stride − 2·Pad + Kernel, …). Its weight is
// (In, Out, Kernel, Kernel), as PyTorch's.
type ConvTranspose2d struct {
	Name                string
	In, Out             int
	Kernel, Stride, Pad int
	NoBias              bool
	Init                Init // of the weight; nil is PyTorch's default
}

// Apply convolves x.
func (l ConvTranspose2d) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		if c.Err() == nil && c.Shape(x).Rank() == 4 && c.Shape(x).At(1) != l.In {
			c.Fail(fmt.Errorf("the image has %d channels, the layer wants %d", c.Shape(x).At(1), l.In))
			return
		}
		fanIn := l.Out * l.Kernel * l.Kernel // PyTorch takes the weight's second axis for it
		w := c.Weight("weight", graph.D(l.In, l.Out, l.Kernel, l.Kernel), orDefault(l.Init, fanIn))
		y = c.ConvTranspose2D(x, w, graph.NewConv(l.Kernel, l.Stride, l.Pad))
		if !l.NoBias {
			y = c.addChannelBias(y, l.Out, fanIn)
		}
	})
	return y
}

// Linear is y = x·Wᵀ + b: (N, In) → (N, Out). Its weight is (Out, In), as
// PyTorch's.
type Linear struct {
	Name     string
	In, Out  int
	NoBias   bool
	Spectral bool
	Init     Init // of the weight; nil is PyTorch's default
	BiasInit Init // of the bias, likewise
}

// Apply multiplies x.
func (l Linear) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		y = c.weighted(layer{
			shape: graph.D(l.Out, l.In), init: orDefault(l.Init, l.In), spectral: l.Spectral,
			pixels: 1, by: func(w graph.ID) graph.ID { return c.MatMul(x, w, false, true) },
		})
		if !l.NoBias {
			y = c.Add(y, c.Weight("bias", graph.D(l.Out), orDefault(l.BiasInit, l.In)))
		}
	})
	return y
}

func orDefault(init Init, fanIn int) Init {
	if init != nil {
		return init
	}
	return FanIn(fanIn)
}

// layer is what a layer does with its weight, and what decides how.
type layer struct {
	shape    graph.Shape // of the weight, outputs first
	init     Init
	spectral bool
	pixels   int                       // of a sample's output
	by       func(w graph.ID) graph.ID // multiplies by a weight; linear in w
}

// weighted is the layer's product with its weight.
func (c *Context) weighted(l layer) graph.ID {
	if l.spectral {
		return c.normalised(l)
	}
	return l.by(c.Weight("weight", l.shape, l.init))
}

func (c *Context) addChannelBias(y graph.ID, n, fanIn int) graph.ID {
	return c.Add(y, c.Reshape(c.Weight("bias", graph.D(n), FanIn(fanIn)), graph.D(1, n, 1, 1)))
}
