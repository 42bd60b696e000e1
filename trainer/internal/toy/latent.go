package toy

import (
	"errors"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// The latents of a toy are (v−m)/σ, one for each value; given them v is certain but
// for a little noise.

// noise is the standard deviation of v given its latents.
const noise = 1e-3

// Encode gives the latents of n samples.
func (c Config) Encode(n int) (*graph.Graph, error) {
	ctx := nn.NewContext(nn.Eval, 1)
	v := c.flat(ctx, n)
	m, s := c.weights(ctx)
	ctx.Output(algo.OutputCode, ctx.Mul(ctx.Sub(v, m), ctx.Exp(ctx.Neg(s))))
	return ctx.Commit()
}

// SampleGiven draws m + σ·h + noise for latents h.
func (c Config) SampleGiven(n int) (chain.Plan, error) {
	d := c.C * c.H * c.W
	h := chain.Var("toy.h", graph.T(graph.F32, n, d))
	out := chain.Var("toy.v", graph.T(graph.F32, n, c.C, c.H, c.W))
	ctx := nn.NewContext(nn.Eval, 1)
	m, s := c.weights(ctx)
	eps := ctx.Draw(ctx.Input(chain.InputKey, graph.KeyType), graph.Normal, philox.Sampling, philox.SamplingLatents, h.Type)
	v := ctx.Add(m, ctx.Mul(ctx.Exp(s), ctx.Var(h.Name, h.Type)))
	v = ctx.Add(v, ctx.Scale(eps, noise))
	ctx.Assign(ctx.Var(out.Name, out.Type), ctx.Reshape(v, out.Type.Shape))
	g, err := ctx.Commit()
	return chain.Plan{Vars: []nn.Variable{h, out}, Stages: []chain.Stage{{Name: "draw", Graph: g, Times: 1}}, Out: out.Name}, err
}

// LogZ is Σ log σ + (d/2)log 2π.
func (c Config) LogZ(o algo.LogZOptions) (algo.Normaliser, error) {
	if !o.Exact {
		return algo.Normaliser{}, errors.New("toy: log Z is known, and not estimated")
	}
	out := chain.Var("toy.logz", graph.T(graph.F64, 1))
	ctx := nn.NewContext(nn.Eval, 1)
	_, s := c.weights(ctx)
	sum := ctx.Shift(ctx.Sum(ctx.Cast(s, graph.F64)), float64(c.C*c.H*c.W)/2*math.Log(2*math.Pi))
	ctx.Assign(ctx.Var(out.Name, out.Type), ctx.Reshape(sum, graph.D(1)))
	g, err := ctx.Commit()
	return algo.Normaliser{Exact: true, Plan: chain.Plan{Vars: []nn.Variable{out}, Stages: []chain.Stage{{Name: "log Z", Graph: g, Times: 1}}, Out: out.Name}}, err
}
