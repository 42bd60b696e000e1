package lebm

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

// latents builds what happens to latents into a graph.
type latents struct {
	*nn.Context
	cfg     Config
	decoder decoder
}

func newLatents(c *nn.Context, cfg Config) latents {
	l := latents{c, cfg, nil}
	l.decoder = l.pictures()
	return l
}

// pictures is the decoder of pictures.
func (l latents) pictures() pictures { return pictures{l.cfg.Net, l.cfg.Sigma} }

// typ is that of the latents of n samples.
func (l latents) typ(n int) graph.Type { return graph.T(l.DType, n, l.cfg.Net.Latent) }

// priorSlope is ∇(E(z) + ½‖z‖²).
func (l latents) priorSlope(z graph.ID) graph.ID {
	return l.slope(z, l.energies(z)...)
}

// posteriorSlope is ∇(−log p(x|z) + E(z) + ½‖z‖²).
func (l latents) posteriorSlope(x, z graph.ID) graph.ID {
	misfit := l.Scale(l.decoder.loss(l.Context, x, z), l.decoder.precision())
	return l.slope(z, append(l.energies(z), misfit)...)
}

// energies are E(z) of each sample, (n), where there is an E.
func (l latents) energies(z graph.ID) []graph.ID {
	if l.cfg.Prior == Gaussian {
		return nil
	}
	return []graph.ID{l.cfg.Net.energy(l.Context, z)}
}

// slope is the gradient in z of what is given for each sample, and of ½‖z‖². No
// sample's terms depend on another's latents, so it is that of their sum.
func (l latents) slope(z graph.ID, terms ...graph.ID) graph.ID {
	slope := z
	for _, t := range terms {
		slope = l.Add(slope, l.Grad(l.Sum(t), z)[0])
	}
	return slope
}

// Places of the two chains among the draws of a step: each has its start, and after
// it the noise of each transition.
const (
	priorPlace     = 0
	posteriorPlace = priorPlace + maxSteps + 1
)

// draw is standard normal for each of n samples, named by its place in the step.
func (l latents) draw(key graph.ID, place, n int) graph.ID {
	return l.Draw(key, graph.Normal, philox.Langevin, uint16(place), l.typ(n))
}

// chained are latents after a chain that begins at N(0, I).
func (l latents) chained(h Chain, key graph.ID, place, n int, slope func(z graph.ID) graph.ID) graph.ID {
	return h.run(l.Context, l.draw(key, place, n), slope, func(i int) graph.ID { return l.draw(key, place+1+i, n) })
}

// prior are z⁻ of n samples.
func (l latents) prior(key graph.ID, n int) (z graph.ID) {
	l.Builder.Scope("prior", func() { z = l.chained(l.cfg.prior(), key, priorPlace, n, l.priorSlope) })
	return z
}

// posterior are z⁺ of the samples x.
func (l latents) posterior(key, x graph.ID) (z graph.ID) {
	l.Builder.Scope("posterior", func() {
		slope := func(z graph.ID) graph.ID { return l.posteriorSlope(x, z) }
		z = l.chained(l.cfg.PosteriorChain, key, posteriorPlace, l.Batch(x), slope)
	})
	return z
}
