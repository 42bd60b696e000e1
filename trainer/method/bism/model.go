package bism

import (
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/langevin"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// trainee is what all models of BiSM can do.
type trainee struct {
	cfg   Config
	model latent.Model
}

// machine is a trained GRBM: what it can do whatever has trained it, and what is
// BiSM's.
type machine struct {
	grbm.Machine
	trainee
}

// Takes settles which of the two says it; they agree.
func (m machine) Takes() algo.Inputs { return m.trainee.Takes() }

// deep is a trained EBLVM.
type deep struct{ trainee }

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	t := trainee{*c, c.Net.Model(c.Temperature)}
	if c.Net.Kind == latent.EBLVM {
		return deep{t}
	}
	return machine{c.Net.Machine(), t}
}

// Takes is what the model reads: pixels in [0, 1], or vectors as they are.
func (t trainee) Takes() algo.Inputs {
	return algo.Inputs{Shape: t.cfg.Net.Picture(), Range: loader.Unit}
}

// annealed is the sampler, which ends with the denoising step of the scale that
// the score was trained at.
func (d deep) annealed() langevin.Annealed {
	a := langevin.Published().Shortened(d.cfg.SampleShare)
	a.Denoise = d.cfg.Sigma0
	return a
}

// Sample draws pictures together with their latents, by annealed Langevin
// dynamics.
func (d deep) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	return d.cfg.Net.EBLVM().SampleJoint(d.annealed(), n)
}

// SampleGiven draws pictures of p(v|h).
func (d deep) SampleGiven(n int) (chain.Plan, error) {
	return d.cfg.Net.EBLVM().SampleGiven(d.annealed(), n)
}

// reading is a graph over n samples that trains nothing.
func (t trainee) reading(n int) (d drawer, theta, phi []graph.ID) {
	c := nn.NewContext(nn.Eval, 1)
	z := t.cfg.Net
	images := c.Input(algo.InputImages, graph.T(graph.F32, n, z.C, z.H, z.W))
	d = drawer{Context: c, cfg: t.cfg, model: t.model, data: c.Reshape(images, withBatch(n, t.model.Shape()))}
	thetas, phis := t.model.Declare(c)
	return d, nn.IDs(thetas), nn.IDs(phis)
}

// Encode gives the means of q(h|v) at the samples as they are.
func (t trainee) Encode(n int) (*graph.Graph, error) {
	d, _, phi := t.reading(n)
	d.Output(algo.OutputCode, t.model.Infer(d.Context, phi, d.data).Mean(d.Context))
	return d.Commit()
}

// drawing is a reading that draws as a step does. The noise levels of MDSM are
// spread over the n samples, whichever they are.
func (t trainee) drawing(n int) (d drawer, theta, phi []graph.ID) {
	d, theta, phi = t.reading(n)
	key := d.Input(algo.InputKey, graph.KeyType)
	d.draw = named(d.Context, key)
	if t.cfg.Objective == MDSM {
		begin := d.Concat(0, d.Slice(key, 0, 0, 2, 1), d.Zeros(graph.T(graph.I64, 1)))
		d.levels = t.cfg.Levels.Levels(d.Context, begin, n)
	}
	return d, theta, phi
}

// Loss gives each sample's term of J(θ, φ), with φ as it is: nothing is unrolled.
func (t trainee) Loss(n int) (*graph.Graph, error) {
	d, theta, phi := t.drawing(n)
	s := &step{drawer: d, theta: optim.State{P: theta}}
	s.Output(algo.OutputLoss, s.losses(phi))
	return s.Commit()
}

// PosteriorGap gives each sample's divergence of q(h|v) from p(h|v), at v as the
// lower level sees it: perturbed with DSM and MDSM. For a GRBM it is the KL divergence, exactly; for an EBLVM
// the Fisher divergence's term, ½‖∇_h(−E(v,h) − log q(h|v))‖² at one h ~ q(h|v).
func (t trainee) PosteriorGap(n int) (*graph.Graph, error) {
	d, theta, phi := t.drawing(n)
	v := d.see(upperPlace).v
	q := t.model.Infer(d.Context, phi, v)
	d.Output(algo.OutputGap, t.model.Gap(d.Context, theta, q, v, d.hidden(q, upperPlace)))
	return d.Commit()
}
