package bidvl

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/generate"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// Sample draws batch samples G(h), h ~ N(0, I). Mode is nn.BatchStats, as the
// released code samples, or nn.Eval.
func (c Config) Sample(mode nn.Mode, batch int) (chain.Plan, error) {
	net, err := c.Net.Build()
	if err != nil {
		return chain.Plan{}, fmt.Errorf("bidvl: %w", err)
	}
	return generate.Net{Latent: c.Net.Latent, Picture: c.Net.Takes().Shape, G: net.Generator}.Sample(mode, batch)
}

// looking starts a graph that looks at batch images.
func (c Config) looking(mode nn.Mode, batch int) (ctx *nn.Context, net nets.Networks, v graph.ID, err error) {
	if net, err = c.Net.Build(); err != nil {
		return nil, nil, 0, fmt.Errorf("bidvl: %w", err)
	}
	ctx = nn.NewContext(mode, 1)
	return ctx, net, ctx.Input(algo.InputImages, graph.T(graph.F32, batch, c.Net.Channels, c.Net.Size, c.Net.Size)), nil
}

// Reconstruct builds G(μ(v)). Mode is nn.BatchStats or nn.Eval.
func (c Config) Reconstruct(mode nn.Mode, batch int) (*graph.Graph, error) {
	ctx, net, v, err := c.looking(mode, batch)
	if err != nil {
		return nil, err
	}
	mean, _ := net.Inference(ctx, v)
	ctx.Output(algo.OutputRecon, net.Generator(ctx, mean))
	return ctx.Commit()
}

// Energies builds E(v), of the undecoupled model E(v, μ(v)). Mode, nn.BatchStats
// or nn.Eval, is that of Q; E has no batch norm.
func (c Config) Energies(mode nn.Mode, batch int) (*graph.Graph, error) {
	ctx, net, v, err := c.looking(mode, batch)
	if err != nil {
		return nil, err
	}
	var logit, energy graph.ID
	if joint, ok := net.(nets.Joint); ok && c.Undecoupled {
		mean, _ := net.Inference(ctx, v)
		logit, energy = joint.JointEnergy(ctx, v, mean)
	} else {
		logit, energy = net.Energy(ctx, v)
	}
	ctx.Output(algo.OutputLogit, logit)
	ctx.Output(algo.OutputEnergy, energy)
	return ctx.Commit()
}

// Encode builds μ(v), the means of the posterior.
func (c Config) Encode(batch int) (*graph.Graph, error) {
	ctx, net, v, err := c.looking(nn.Eval, batch)
	if err != nil {
		return nil, err
	}
	mean, _ := net.Inference(ctx, v)
	ctx.Output(algo.OutputCode, mean)
	return ctx.Commit()
}
