package eblvm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/langevin"
	"ebtrain/trainer/model/nn"
)

// pictures is the shape of count pictures.
func (t Trunk) pictures(count int) graph.Shape {
	return graph.D(count, t.Channels, t.Size, t.Size)
}

// Sample draws count pictures of the visible model.
func (t Trunk) Sample(a langevin.Annealed, count int) (chain.Plan, error) {
	return a.Plan(langevin.System{Pictures: t.pictures(count), Energy: func(c *nn.Context, v, _ graph.ID) graph.ID {
		return t.VisibleEnergy(c, v)
	}})
}

// SampleJoint draws count pictures together with their latents. The result are
// the pictures.
func (n Net) SampleJoint(a langevin.Annealed, count int) (chain.Plan, error) {
	return a.Plan(langevin.System{Pictures: n.pictures(count), Moving: graph.D(count, n.Latent), Energy: n.Energy})
}

// SampleGiven draws count pictures from p(v|h), one for each of the latents that
// the plan's first variable holds, (count, Latent).
func (n Net) SampleGiven(a langevin.Annealed, count int) (chain.Plan, error) {
	return a.Plan(langevin.System{Pictures: n.pictures(count), Given: graph.D(count, n.Latent), Energy: n.Energy})
}
