// Package generate draws pictures from a generator net, v = G(h) with latents
// h ~ N(0, I) or given ones: the plans that programs run.
package generate

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Net is a generator and its sizes.
type Net struct {
	Latent  int         // of h
	Picture graph.Shape // of v: (C, H, W)
	G       func(c *nn.Context, h graph.ID) graph.ID
}

// Sample draws n pictures, with latents of their own. Mode is nn.BatchStats or
// nn.Eval.
func (g Net) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	c := nn.NewContext(mode, 1)
	h := c.Draw(c.Input(chain.InputKey, graph.KeyType), graph.Normal, philox.Sampling, philox.SamplingLatents, graph.T(graph.F32, n, g.Latent))
	return g.plan(c, h, nil, n)
}

// Given draws n pictures by running statistics, one for each of the latents that
// the plan's first variable holds, (n, Latent).
func (g Net) Given(n int) (chain.Plan, error) {
	c := nn.NewContext(nn.Eval, 1)
	h := chain.Var("latents", graph.T(graph.F32, n, g.Latent))
	return g.plan(c, c.Var(h.Name, h.Type), []nn.Variable{h}, n)
}

// plan assigns the pictures to a variable after vars.
func (g Net) plan(c *nn.Context, h graph.ID, vars []nn.Variable, n int) (chain.Plan, error) {
	out := chain.Var("samples", graph.T(graph.F32, append([]int{n}, g.Picture.Slice()...)...))
	c.Assign(c.Var(out.Name, out.Type), g.G(c, h))
	graph, err := c.Commit()
	return chain.Plan{Vars: append(vars, out), Stages: []chain.Stage{{Name: "sample", Graph: graph, Times: 1}}, Out: out.Name}, err
}
