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
		fanIn := l.In * l.Kernel * l.Kernel
		w := c.weightOf(graph.D(l.Out, l.In, l.Kernel, l.Kernel), orDefault(l.Init, fanIn), l.Spectral)
		y = c.Conv2D(x, w, graph.NewConv(l.Kernel, l.Stride, l.Pad))
		if !l.NoBias {
			y = c.addChannelBias(y, l.Out, fanIn)
		}
	})
	return y
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
		w := c.weightOf(graph.D(l.In, l.Out, l.Kernel, l.Kernel), orDefault(l.Init, fanIn), false)
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
}

// Apply multiplies x.
func (l Linear) Apply(c *Context, x graph.ID) (y graph.ID) {
	c.Scope(l.Name, func() {
		w := c.weightOf(graph.D(l.Out, l.In), orDefault(l.Init, l.In), l.Spectral)
		y = c.MatMul(x, w, false, true)
		if !l.NoBias {
			y = c.Add(y, c.Weight("bias", graph.D(l.Out), FanIn(l.In)))
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

// weightOf is the weight that the layer multiplies by.
func (c *Context) weightOf(s graph.Shape, init Init, spectral bool) graph.ID {
	if spectral {
		return c.spectralWeight(s, init)
	}
	return c.Weight("weight", s, init)
}

func (c *Context) addChannelBias(y graph.ID, n, fanIn int) graph.ID {
	return c.Add(y, c.Reshape(c.Weight("bias", graph.D(n), FanIn(fanIn)), graph.D(1, n, 1, 1)))
}
