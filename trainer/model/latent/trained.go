package latent

import (
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/langevin"
	"ebtrain/trainer/model/nn"
)

// Trained is what can be had of a model whatever method has trained it.
type Trained struct {
	Net   Net
	Model Model
}

// Takes is what the model reads: pixels in [0, 1], or vectors as they are.
func (t Trained) Takes() algo.Inputs {
	return algo.Inputs{Shape: t.Net.Picture(), Range: loader.Unit}
}

// Reading is a graph over n samples that trains nothing.
type Reading struct {
	*nn.Context
	V          graph.ID // (n, shape)
	Theta, Phi []graph.ID
}

// Reading begins one.
func (t Trained) Reading(n int) Reading {
	c := nn.NewContext(nn.Eval, 1)
	v := t.Flat(c, c.Input(algo.InputImages, graph.T(graph.F32, n, t.Net.C, t.Net.H, t.Net.W)))
	theta, phi := t.Model.Declare(c)
	return Reading{c, v, nn.IDs(theta), nn.IDs(phi)}
}

// Flat is samples (B, C, H, W) as the model takes them.
func (t Trained) Flat(c *nn.Context, images graph.ID) graph.ID {
	return c.Reshape(images, graph.D(append([]int{c.Batch(images)}, t.Model.Shape().Slice()...)...))
}

// Encode gives the means of q(h|v) at the samples as they are.
func (t Trained) Encode(n int) (*graph.Graph, error) {
	r := t.Reading(n)
	r.Output(algo.OutputCode, t.Model.Infer(r.Context, r.Phi, r.V).Mean(r.Context))
	return r.Commit()
}

// Sampler is the annealed Langevin sampler of a deep model.
type Sampler struct {
	Net Net
	// Share is the share of the published 2,700 steps that are taken.
	Share float64
	// Denoise is the noise level that the score was trained at: the sampler ends with
	// a denoising step of it.
	Denoise float64
}

func (s Sampler) annealed() langevin.Annealed {
	a := langevin.Published().Shortened(s.Share)
	a.Denoise = s.Denoise
	return a
}

// Sample draws pictures together with their latents.
func (s Sampler) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	return s.Net.EBLVM().SampleJoint(s.annealed(), n)
}

// SampleGiven draws pictures of p(v|h).
func (s Sampler) SampleGiven(n int) (chain.Plan, error) {
	return s.Net.EBLVM().SampleGiven(s.annealed(), n)
}
