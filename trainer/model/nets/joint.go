package nets

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// JointEnergy is the energy net of images and latents together, for the
// undecoupled model [ALGORITHMS.md §1.2 (i); Han et al.]: the convolutions of E
// down to 1×1 beside 1×1 convolutions of h with the same channels, both without
// activation at their ends, concatenated and followed by two 1×1 convolutions.
// Every layer has spectral norm and a bias.
func (n Conv) JointEnergy(c *nn.Context, v, h graph.ID) (logit, energy graph.ID) {
	c.Scope("energy", func() {
		image := n.trunk(c, v)
		x := c.Concat(1, image.x, n.latents(c, h, image.outs))
		width := 2 * image.in
		x = c.LeakyRelu(point("joint1", width, width).Apply(c, x), 0.1)
		logit = c.Reshape(point("joint2", width, 1).Apply(c, x), graph.D(c.Batch(v), 1))
		energy = c.Softplus(logit)
	})
	return logit, energy
}

// latents are 1×1 convolutions of h, one for each of the widths outs.
func (n Conv) latents(c *nn.Context, h graph.ID, outs []int) graph.ID {
	x, in := c.Reshape(h, graph.D(c.Batch(h), n.Latent, 1, 1)), n.Latent
	for i, out := range outs {
		if i > 0 {
			x = c.LeakyRelu(x, 0.1)
		}
		x, in = point(fmt.Sprintf("latent%d", i+1), in, out).Apply(c, x), out
	}
	return x
}

// point is a 1×1 convolution of the energy net.
func point(name string, in, out int) nn.Conv2d {
	return nn.Conv2d{Name: name, In: in, Out: out, Kernel: 1, Stride: 1, Spectral: true, Init: initial}
}
