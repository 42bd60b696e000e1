package bidvl

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Report are the entries of the step's report.
func (c Config) Report() []algo.Column { return algo.Columns(c.reported(), "upper", "lower", "recon") }

// reported names the entries of the report. All are means over the global
// batch, except the norms of the averaged gradients. Of several lower steps it
// has the last.
func (c Config) reported() []string {
	names := []string{"upper", "lower", "energy_data", "energy_fake", "energy_gen"}
	add := func(when bool, more ...string) {
		if when {
			names = append(names, more...)
		}
	}
	add(c.Undecoupled, "energy_post", "entropy")
	add(c.LatentTerm != NoLatent, "latent")
	add(c.LatentTerm == NotOffset, "prior_fake")
	add(c.hasVAE(), "recon", "kl")
	add(c.Ratio != ConstantRatio, "ratio", "vae")
	add(true, algo.ReportStop, "grad_energy", "grad_inference", "grad_generator")
	add(c.LatentTerm == NotOffset, "grad_prior")
	return names
}

// Feeder fills the schedules of the optimisers.
func (c Config) Feeder(p exec.Program) func(step int64, epoch int) {
	var all []func(step int64, epoch int)
	for _, a := range c.optimisers() {
		all = append(all, a.Feeders(p, a.steps))
	}
	return func(step int64, epoch int) {
		for _, feed := range all {
			feed(step, epoch)
		}
	}
}

// step is a training step under construction.
type step struct {
	*nn.Context
	cfg     Config
	net     nets.Networks
	v       graph.ID            // data, (B, C, H, W)
	key     graph.ID            // of all draws, see graph.Draw
	means   map[string]graph.ID // scalars to be averaged over ranks
	norms   map[string]graph.ID // scalars equal on all ranks
	latent  graph.ID            // ĥ of the upper level, (B, Latent)
	stepped map[string]int      // steps so far, by optimiser
}

// Step builds one training step for a rank that sees batch of the world·batch
// samples of the global batch.
func (c Config) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	net, err := c.Net.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("bidvl: %w", err)
	}
	return algo.TrainStep("bidvl", world, func(ctx *nn.Context) { newStep(ctx, c, net, batch).build() })
}

// newStep declares what a step reads. The networks are net, with the sizes of
// cfg.Net.
func newStep(ctx *nn.Context, cfg Config, net nets.Networks, batch int) *step {
	n := cfg.Net
	s := &step{
		Context: ctx, cfg: cfg, net: net,
		v:     ctx.Input(algo.InputImages, graph.T(ctx.DType, batch, n.Channels, n.Size, n.Size)),
		key:   ctx.Input(algo.InputKey, graph.KeyType),
		means: map[string]graph.ID{algo.ReportStop: ctx.Input(algo.InputStop, graph.T(ctx.DType))},
		norms: map[string]graph.ID{}, stepped: map[string]int{},
	}
	s.latent = s.draw(philox.Latent, 0)
	return s
}

// build makes both levels, in the order of the config, and the report.
func (s *step) build() {
	if s.cfg.Order == UpperFirst {
		s.upper()
	}
	for i := range s.cfg.LowerSteps {
		s.lower(i)
	}
	if s.cfg.Order == LowerFirst {
		s.upper()
	}
	s.report()
}

// draw is a standard normal latent for each sample, (B, Latent). sub tells draws of one purpose
// in a step apart. Latents: 0 is the upper level's ĥ, n+1 that of step n of the lower level, if
// it has one of its own. Posteriors: 0 is ε of the data in the upper level and in the lower
// level's first step, which are the same, 2n that of its step n, 2n+1 that of its samples.
func (s *step) draw(p philox.Purpose, sub uint16) graph.ID {
	return s.Draw(s.key, graph.Normal, p, sub, graph.T(s.DType, s.Batch(s.v), s.cfg.Net.Latent))
}

// energies are E(v) of each sample, (B, 1), or E(v, h) of the undecoupled model; v is (B, C, H, W),
// h (B, Latent), and 0 where there is none.
func (s *step) energies(v, h graph.ID) (energy graph.ID) {
	if !s.cfg.Undecoupled {
		_, energy = s.net.Energy(s.Context, v)
		return energy
	}
	joint, ok := s.net.(nets.Joint)
	if !ok {
		s.Fail(fmt.Errorf("the %s networks have no energy net of images and latents", s.cfg.Net.Name()))
		return 0
	}
	_, energy = joint.JointEnergy(s.Context, v, h)
	return energy
}

// upper is the upper level: it steps E [Eq. 14, or 23 with the hinge loss]:
//
//	⟨E(v)⟩ − ⟨E(v̂)⟩,  v̂ = G(ĥ) detached;
//
// of the undecoupled model ⟨E(v, h)⟩ − ⟨E(v̂, ĥ)⟩ with h ~ q(h|v) detached. If
// not offset, it then steps Q.
func (s *step) upper() {
	fake := s.StopGrad(s.net.Generator(s.Context, s.latent))
	var h graph.ID
	if s.cfg.Undecoupled {
		mean, logVar := s.net.Inference(s.Context, s.v)
		h = s.StopGrad(reparameterise(s.Context, mean, logVar, s.draw(philox.Posterior, 0)))
	}
	data, gen := s.energies(s.v, h), s.energies(fake, s.latent)
	loss := separation(s.Context, s.cfg.UpperLoss, data, gen)
	s.means["energy_data"], s.means["energy_fake"], s.means["upper"] = s.Mean(data), s.Mean(gen), loss
	ps := s.Params("energy")
	s.adam(s.cfg.Upper, ps, s.sync("energy", s.Grad(loss, nn.IDs(ps)...)))
	if s.cfg.LatentTerm == NotOffset {
		s.prior(fake)
	}
}

// prior steps Q against λ_h⟨KL(q(h|v̂) ‖ p(h))⟩, v̂ detached [Eq. 12, as the
// released code has it: Eq. 12 itself would maximise the latent term, which
// diverges]. Where Q and G share an optimiser, G takes the step with gradient
// zero: its moments and its weights decay.
func (s *step) prior(fake graph.ID) {
	mean, logVar := s.net.Inference(s.Context, fake)
	kl := klPrior(s.Context, mean, logVar)
	s.means["prior_fake"] = kl
	ps := s.Params("inference")
	grads := s.sync("prior", s.Grad(s.Scale(kl, s.cfg.latentWeight()), nn.IDs(ps)...))
	if s.cfg.Generator == nil {
		for _, p := range s.Params("generator") {
			ps, grads = append(ps, p), append(grads, s.Zeros(s.Type(p.ID)))
		}
	}
	s.adam(s.cfg.Lower, ps, grads)
}

// adam takes the next step of an optimiser.
func (s *step) adam(a optim.Adam, ps []nn.Param, grads []graph.ID) {
	a.StepN(s.Context, s.stepped[a.Name], ps, grads)
	s.stepped[a.Name]++
}

// sync averages a network's gradients over ranks and notes their norm.
func (s *step) sync(net string, grads []graph.ID) []graph.ID {
	grads = ddp.Sync(s.Builder, s.World, net, grads)
	s.norms["grad_"+net] = optim.Norm(s.Context, grads)
	return grads
}

// report is the output algo.OutputReport.
func (s *step) report() {
	var means, norms []graph.ID
	for _, name := range s.cfg.reported() {
		if id, ok := s.means[name]; ok {
			means = append(means, id)
		} else {
			norms = append(norms, s.norms[name])
		}
	}
	algo.WriteReport(s.Context, means, norms)
}
