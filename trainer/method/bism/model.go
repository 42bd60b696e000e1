package bism

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/optim"
)

// trainee is what all models of BiSM can do.
type trainee struct {
	latent.Trained
	cfg Config
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
type deep struct {
	trainee
	latent.Sampler
}

// trainee is that of a config that fits its data and is valid.
func (c Config) trainee() trainee {
	return trainee{latent.Trained{Net: c.Net, Model: c.Net.Model(c.Temperature)}, c}
}

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	if c.Net.Kind == latent.EBLVM {
		return deep{c.trainee(), latent.Sampler{Net: c.Net, Share: c.SampleShare, Denoise: c.Noise.Of(c.Objective)}}
	}
	return machine{c.Net.Machine(), c.trainee()}
}

// drawing is a reading that draws as a step does. The noise levels of MDSM are
// spread over the n samples, whichever they are.
func (t trainee) drawing(n int) (d drawer, theta, phi []graph.ID) {
	r := t.Reading(n)
	key := r.Input(algo.InputKey, graph.KeyType)
	d = drawer{Context: r.Context, cfg: t.cfg, model: t.Model, data: r.V, draw: named(r.Context, key)}
	if t.cfg.Objective == MDSM {
		begin := d.Concat(0, d.Slice(key, 0, 0, 2, 1), d.Zeros(graph.T(graph.I64, 1)))
		d.levels = t.cfg.Levels.Levels(d.Context, begin, n)
	}
	return d, r.Theta, r.Phi
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
	q := t.Model.Infer(d.Context, phi, v)
	d.Output(algo.OutputGap, t.Model.Gap(d.Context, theta, q, v, d.hidden(q, upperPlace)))
	return d.Commit()
}
