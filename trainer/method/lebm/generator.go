package lebm

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// pictures is the decoder of pictures (n, C, H, W) in [−1, 1]: transposed
// convolutions with biases and no batch norm, leaky ReLU between them and tanh at the
// end, and noise of σ around that.
type pictures struct {
	Net
	sigma float64
}

// layer is a transposed convolution with a square kernel.
type layer struct{ out, kernel, stride, pad int }

// layers are those of the paper, of base width ngf.
func (n Net) layers() []layer {
	double := func(out int) layer { return layer{out, 4, 2, 1} }
	w := n.NGF
	switch n.Shape {
	case CIFAR10:
		return []layer{{8 * w, 8, 1, 0}, double(4 * w), double(2 * w), {n.Channels, 3, 1, 1}}
	case CelebA64:
		return []layer{{8 * w, 4, 1, 0}, double(4 * w), double(2 * w), double(w), double(n.Channels)}
	}
	return []layer{{8 * w, 4, 1, 0}, double(4 * w), double(2 * w), double(n.Channels)}
}

func (p pictures) decode(c *nn.Context, z graph.ID) (x graph.ID) {
	c.Scope(generatorNet, func() {
		in := p.Latent
		x = c.Reshape(z, graph.D(c.Batch(z), in, 1, 1))
		for i, l := range p.layers() {
			if i > 0 {
				x = c.LeakyRelu(x, generatorLeak)
			}
			area := l.kernel * l.kernel
			x = nn.ConvTranspose2d{Name: fmt.Sprintf("conv%d", i+1), In: in, Out: l.out, Kernel: l.kernel, Stride: l.stride, Pad: l.pad,
				Init: nn.XavierNormal(in*area, l.out*area)}.Apply(c, x)
			in = l.out
		}
		x = c.Tanh(x)
	})
	return x
}

// loss is ‖x − G(z)‖², added over pixels and channels.
func (p pictures) loss(c *nn.Context, x, z graph.ID) graph.ID {
	return c.Sum(c.Square(c.Sub(x, p.decode(c, z))), 1, 2, 3)
}

func (p pictures) precision() float64 { return 1 / (2 * p.sigma * p.sigma) }
