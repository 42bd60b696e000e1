package bidvl

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
)

// The outputs of Judge.
const (
	OutputRecon  = "recon"  // G(μ(v)), of the shape of the images
	OutputLogit  = "logit"  // (batch, 1): ranks like the energy, without ties
	OutputEnergy = "energy" // (batch, 1)
)

// Sample builds batch samples G(h), h ~ N(0, I), named by loop.InputKey. Mode is
// nn.BatchStats, as the released code samples, or nn.Eval.
func (c Config) Sample(mode nn.Mode, batch int) (*graph.Graph, error) {
	net, err := c.Net.Build()
	if err != nil {
		return nil, fmt.Errorf("bidvl: %w", err)
	}
	ctx := nn.NewContext(mode, 1)
	key := ctx.Input(loop.InputKey, graph.KeyType)
	h := ctx.Draw(key, graph.Normal, philox.Sampling, 0, graph.T(graph.F32, batch, c.Net.Latent))
	ctx.Output(loop.OutputSamples, net.Generator(ctx, h))
	return ctx.Commit()
}

// Judge builds, for batch images, their reconstructions G(μ(v)) and energies;
// of the undecoupled model E(v, μ(v)). Mode is nn.BatchStats or nn.Eval; it is
// the mode of Q and G, E has no batch norm.
func (c Config) Judge(mode nn.Mode, batch int) (*graph.Graph, error) {
	net, err := c.Net.Build()
	if err != nil {
		return nil, fmt.Errorf("bidvl: %w", err)
	}
	ctx := nn.NewContext(mode, 1)
	v := ctx.Input(loop.InputImages, graph.T(graph.F32, batch, c.Net.Channels, c.Net.Size, c.Net.Size))
	mean, _ := net.Inference(ctx, v)
	ctx.Output(OutputRecon, net.Generator(ctx, mean))
	var logit, energy graph.ID
	if joint, ok := net.(nets.Joint); ok && c.Undecoupled {
		logit, energy = joint.JointEnergy(ctx, v, mean)
	} else {
		logit, energy = net.Energy(ctx, v)
	}
	ctx.Output(OutputLogit, logit)
	ctx.Output(OutputEnergy, energy)
	return ctx.Commit()
}
