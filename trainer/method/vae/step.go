package vae

import (
	"math"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/gaussian"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Entries of the report besides algo.ReportStop, means over the global batch.
const (
	reportLoss  = "loss"  // the negative bound
	reportRecon = "recon" // ‖v − G(h)‖², the squares added over a picture
	reportKL    = "kl"    // KL(q ‖ N(0, I)), without β
	reportNorm  = "grad"  // length of the averaged gradient
)

// Report are the entries of the report.
func (c Config) Report() []algo.Column {
	return algo.Columns([]string{reportLoss, reportRecon, reportKL, algo.ReportStop, reportNorm}, reportLoss, reportRecon, reportKL)
}

// Feeder fills the schedule of the optimiser.
func (c Config) Feeder(p exec.Program) func(step int64, epoch int) { return c.Adam.Feeder(p) }

// bound are the terms of the negative evidence lower bound, each (N).
type bound struct{ loss, recon, kl graph.ID }

// bound is that of images v, (N, C, H, W), with noise ε, (N, Latent).
func (c Config) bound(ctx *nn.Context, net nets.Networks, v, eps graph.ID) bound {
	mean, logVar := net.Inference(ctx, v)
	q := gaussian.Diagonal{Mean: mean, LogVar: logVar}
	recon := ctx.Sum(ctx.Square(ctx.Sub(v, net.Generator(ctx, q.Draw(ctx, eps)))), 1, 2, 3)
	kl := q.KL(ctx)
	values := float64(c.Takes().Shape.Len())
	nll := ctx.Shift(ctx.Scale(recon, 1/(2*c.Variance)), values/2*math.Log(2*math.Pi*c.Variance))
	return bound{ctx.Add(nll, ctx.Scale(kl, c.Beta)), recon, kl}
}

// noise is ε of the n samples of a rank.
func (c Config) noise(ctx *nn.Context, n int) graph.ID {
	return ctx.Draw(ctx.Input(algo.InputKey, graph.KeyType), graph.Normal, philox.Posterior, 0, graph.T(ctx.DType, n, c.Net.Latent))
}

// images are those of a rank.
func (c Config) images(ctx *nn.Context, n int) graph.ID {
	return ctx.Input(algo.InputImages, graph.T(ctx.DType, append([]int{n}, c.Takes().Shape.Slice()...)...))
}

// Step builds one training step for a rank that sees batch of the world·batch
// samples of the global batch.
func (c Config) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	net, err := c.build()
	if err != nil {
		return nil, nil, err
	}
	return algo.TrainStep("vae", world, func(ctx *nn.Context) { c.step(ctx, net, batch) })
}

// step is the whole step, with networks of the config's sizes.
func (c Config) step(ctx *nn.Context, net nets.Networks, batch int) {
	b := c.bound(ctx, net, c.images(ctx, batch), c.noise(ctx, batch))
	loss := ctx.Mean(b.loss)
	ps := append(ctx.Params("inference"), ctx.Params("generator")...)
	grads := ddp.Sync(ctx.Builder, ctx.World, "vae", ctx.Grad(loss, nn.IDs(ps)...))
	c.Adam.Step(ctx, ps, grads)
	stop := ctx.Input(algo.InputStop, graph.T(graph.F32))
	algo.WriteReport(ctx, []graph.ID{loss, ctx.Mean(b.recon), ctx.Mean(b.kl), stop}, []graph.ID{optim.Norm(ctx, grads)})
}
