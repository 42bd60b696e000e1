package sm

import (
	"ebtrain/data/loader"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/score"
)

// optimiser is the name of Adam, which is in the names of its moments.
const optimiser = "model"

// inputRates are the rates of Adam's step.
const inputRates = "rates"

// trainee is what all models of score matching can do.
type trainee struct{ cfg Config }

// Takes is what the model reads: pixels in [0, 1], or vectors as they are.
func (t trainee) Takes() algo.Inputs {
	n := t.cfg.Net
	return algo.Inputs{Shape: graph.D(n.C, n.H, n.W), Range: loader.Unit}
}

// Report are the entries of the report.
func (t trainee) Report() []algo.Column {
	return t.cfg.report().Columns()
}

func (c *Config) report() score.Report {
	return score.Report{Objective: c.Objective, Noise: c.Noise, Loss: "loss"}
}

// Feeder fills Adam's rates.
func (t trainee) Feeder(p exec.Program) func(step int64, epoch int) {
	return optim.RowsFeeder(p, inputRates, 1, t.cfg.rates)
}

func (c *Config) rates(_ int, step int64) [2]float64 {
	return optim.AdamRates(c.Rate().Rate(step), c.Beta1, c.Beta2, step+1)
}

// Step builds one training step for a rank that sees batch of world·batch
// samples.
func (t trainee) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("sm", world, func(c *nn.Context) { t.build(c, batch) })
}

// build makes a step in c.
func (t trainee) build(c *nn.Context, batch int) {
	n, d := t.cfg.Net, t.cfg.density()
	images := c.Input(algo.InputImages, graph.T(c.DType, batch, n.C, n.H, n.W))
	v := c.Reshape(images, graph.D(append([]int{batch}, d.shape().Slice()...)...))
	ps := d.declare(c)
	state := optim.Declare(c, optimiser, ps)
	key := c.Input(algo.InputKey, graph.KeyType)
	loss := c.Mean(t.losses(c, d, v, key, key))
	grads := ddp.Sync(c.Builder, c.World, "model", c.Grad(loss, state.P...))
	t.cfg.Pure().Step(c, state, t.cfg.Clipped(c, grads), optim.Rows(c, inputRates, 1)[0]).Keep(c, optimiser, ps)
	t.cfg.report().Write(c, loss, nil, grads)
}

// losses are those of each sample of v, (B). key names what is drawn; the third
// entry of place says where on the grid of noise levels the samples begin.
func (t trainee) losses(c *nn.Context, d density, v, key, place graph.ID) graph.ID {
	draw := func(p philox.Purpose, dist graph.Dist) graph.ID { return c.Draw(key, dist, p, 0, c.Type(v)) }
	switch t.cfg.Objective {
	case DSM:
		eps := draw(philox.Perturb, graph.Normal)
		noisy := t.cfg.Perturbed(c, DSM, v, eps, 0)
		return score.Denoising(c, d.score(c, noisy), eps, t.cfg.Sigma)
	case MDSM:
		eps := draw(philox.Perturb, graph.Normal)
		levels := t.cfg.Levels.Levels(c, place, c.Batch(v))
		noisy := t.cfg.Perturbed(c, MDSM, v, eps, levels)
		return score.Multiscale(c, d.score(c, noisy), eps, levels, t.cfg.Sigma0)
	}
	if m, ok := d.(machine); ok && t.cfg.Trace == Exact {
		return m.params(c).FisherLoss(c, v)
	}
	return score.Sliced(c, d.score(c, v), v, draw(philox.Projection, graph.Rademacher))
}

// Loss gives each sample's loss. The noise levels of MDSM are spread over the n
// samples, whichever they are.
func (t trainee) Loss(n int) (*graph.Graph, error) {
	c, z, d := nn.NewContext(nn.Eval, 1), t.cfg.Net, t.cfg.density()
	images := c.Input(algo.InputImages, graph.T(c.DType, n, z.C, z.H, z.W))
	v := c.Reshape(images, graph.D(append([]int{n}, d.shape().Slice()...)...))
	key := c.Input(algo.InputKey, graph.KeyType)
	place := c.Concat(0, c.Slice(key, 0, 0, 2, 1), c.Zeros(graph.T(graph.I64, 1)))
	c.Output(algo.OutputLoss, t.losses(c, d, v, key, place))
	return c.Commit()
}
