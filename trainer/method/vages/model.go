package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
)

// trainee is what all models of VaGES can do. Whether what was trained encodes depends on
// the estimator.
type trainee struct {
	trained latent.Trained
	cfg     Config
}

// Takes is what the model reads.
func (t trainee) Takes() algo.Inputs { return t.trained.Takes() }

// Group is that of the config.
func (t trainee) Group() int { return t.cfg.Group() }

// machine is a trained GRBM: what it can do whatever has trained it, and what is
// VaGES'.
type machine struct {
	grbm.Machine
	trainee
}

// Takes settles which of the two says it; they agree.
func (m machine) Takes() algo.Inputs { return m.trainee.Takes() }

// inferring is what is to be had of a q that was fitted. Without one, q is as it was
// drawn, and its codes and divergence are chance.
type inferring struct{ of trainee }

// inferred is a machine with a q.
type inferred struct {
	machine
	inferring
}

// deep is a trained EBLVM, which always has a q.
type deep struct {
	trainee
	inferring
	latent.Sampler
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	t := trainee{trained: latent.Trained{Net: c.Net, Model: c.model()}, cfg: *c}
	if c.Net.Kind == latent.EBLVM {
		return deep{t, inferring{t}, latent.Sampler{Net: c.Net, Share: c.SampleShare, Denoise: c.Noise.Of(c.Objective)}}
	}
	m := machine{c.Net.Machine(), t}
	if c.Estimator == Variational {
		return inferred{m, inferring{t}}
	}
	return m
}

// drawing is a reading that draws as a step does. The noise levels of MDSM are
// spread over the n samples, whichever they are.
func (t trainee) drawing(n int) (d drawer, phi []graph.ID) {
	r := t.trained.Reading(n)
	key := r.Input(algo.InputKey, graph.KeyType)
	d = drawer{Context: r.Context, cfg: t.cfg, model: t.trained.Model, data: r.V, key: key, theta: r.Theta}
	if t.cfg.Objective == MDSM {
		begin := d.Concat(0, d.Slice(key, 0, 0, 2, 1), d.Zeros(graph.T(graph.I64, 1)))
		d.levels = t.cfg.Levels.Levels(d.Context, begin, n)
	}
	return d, r.Phi
}

// Loss gives each sample's term of the upper level's loss; with KSD that of each
// sample and the next one of the n, the last with the first.
func (t trainee) Loss(n int) (*graph.Graph, error) {
	d, phi := t.drawing(n)
	e := d.estimate(phi)
	if t.cfg.Objective == KSD {
		d.Output(algo.OutputLoss, d.neighbours(e))
		return d.Commit()
	}
	_, loss := d.functional(e, d.see(scorePlace))
	d.Output(algo.OutputLoss, loss)
	return d.Commit()
}

// PosteriorGap gives each sample's divergence of q(h|v) from p(h|v), at v as the
// lower level sees it: for a GRBM the KL divergence, exactly; for an EBLVM the Fisher
// divergence's term at one h ~ q(h|v).
func (i inferring) PosteriorGap(n int) (*graph.Graph, error) {
	d, phi := i.of.drawing(n)
	v := d.see(scorePlace).v
	q := d.model.Infer(d.Context, phi, v)
	numbers := d.draw(philox.Hidden, scorePlace, q.Dist(), graph.T(d.DType, n, d.cfg.Net.Hidden))
	d.Output(algo.OutputGap, d.model.Gap(d.Context, d.theta, q, v, q.Sample(d.Context, numbers)))
	return d.Commit()
}

// Encode gives the means of q(h|v) at the samples as they are.
func (i inferring) Encode(n int) (*graph.Graph, error) { return i.of.trained.Encode(n) }
