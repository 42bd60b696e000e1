package vages

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
)

// trainee is what all models of VaGES can do.
type trainee struct {
	latent.Trained
	cfg Config
}

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

// deep is a trained EBLVM.
type deep struct {
	trainee
	latent.Sampler
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	t := trainee{latent.Trained{Net: c.Net, Model: c.model()}, *c}
	if c.Net.Kind == latent.EBLVM {
		return deep{t, latent.Sampler{Net: c.Net, Share: c.SampleShare, Denoise: c.scale()}}
	}
	return machine{c.Net.Machine(), t}
}

// drawing is a reading that draws as a step does. The noise levels of MDSM are
// spread over the n samples, whichever they are.
func (t trainee) drawing(n int) (d drawer, phi []graph.ID) {
	r := t.Reading(n)
	key := r.Input(algo.InputKey, graph.KeyType)
	d = drawer{Context: r.Context, cfg: t.cfg, model: t.Model, data: r.V, key: key, theta: r.Theta}
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
func (t trainee) PosteriorGap(n int) (*graph.Graph, error) {
	d, phi := t.drawing(n)
	v := d.see(scorePlace).v
	q := t.Model.Infer(d.Context, phi, v)
	numbers := d.draw(philox.Hidden, scorePlace, q.Dist(), graph.T(d.DType, n, t.cfg.Net.Hidden))
	d.Output(algo.OutputGap, t.Model.Gap(d.Context, d.theta, q, v, q.Sample(d.Context, numbers)))
	return d.Commit()
}
