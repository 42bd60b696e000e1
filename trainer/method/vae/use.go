package vae

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/generate"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// generator is what draws.
func (c Config) generator() (generate.Net, error) {
	net, err := c.build()
	if err != nil {
		return generate.Net{}, err
	}
	return generate.Net{Latent: c.Net.Latent, Picture: c.Takes().Shape, G: net.Generator}, nil
}

// Sample draws n means G(h) of pictures, h ~ N(0, I), without the decoder's
// noise, as is usual.
func (c Config) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	g, err := c.generator()
	if err != nil {
		return chain.Plan{}, err
	}
	return g.Sample(mode, n)
}

// SampleGiven draws G(h) for given latents.
func (c Config) SampleGiven(n int) (chain.Plan, error) {
	g, err := c.generator()
	if err != nil {
		return chain.Plan{}, err
	}
	return g.Given(n)
}

// looking is a graph over n pictures that trains nothing: what see says of them is
// its output of that name.
func (c Config) looking(mode nn.Mode, n int, output string, see func(ctx *nn.Context, net nets.Networks, v graph.ID) graph.ID) (*graph.Graph, error) {
	net, err := c.build()
	if err != nil {
		return nil, err
	}
	ctx := nn.NewContext(mode, 1)
	ctx.Output(output, see(ctx, net, c.images(ctx, n)))
	return ctx.Commit()
}

// Reconstruct builds G(μ(v)).
func (c Config) Reconstruct(mode nn.Mode, n int) (*graph.Graph, error) {
	return c.looking(mode, n, algo.OutputRecon, func(ctx *nn.Context, net nets.Networks, v graph.ID) graph.ID {
		mean, _ := net.Inference(ctx, v)
		return net.Generator(ctx, mean)
	})
}

// Encode builds μ(v), by running statistics.
func (c Config) Encode(n int) (*graph.Graph, error) {
	return c.looking(nn.Eval, n, algo.OutputCode, func(ctx *nn.Context, net nets.Networks, v graph.ID) graph.ID {
		mean, _ := net.Inference(ctx, v)
		return mean
	})
}

// Loss builds each picture's negative bound, with one draw of its latents, by
// running statistics.
func (c Config) Loss(n int) (*graph.Graph, error) {
	return c.looking(nn.Eval, n, algo.OutputLoss, func(ctx *nn.Context, net nets.Networks, v graph.ID) graph.ID {
		return c.bound(ctx, net, v, c.noise(ctx, n)).loss
	})
}
