package lebm

import (
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// step is a training step under construction.
type step struct {
	latents
	x, key graph.ID
	report map[string]graph.ID
	learnt decoder // whose loss the generator descends
	staged bool    // z⁺ were inferred before the step
}

// newStep declares what a step of batch samples on each of c.World ranks reads.
func newStep(c *nn.Context, cfg Config, batch int) *step {
	x := c.Input(algo.InputImages, graph.Type{DType: c.DType, Shape: cfg.shape(batch)})
	l := newLatents(c, cfg)
	return &step{latents: l, x: x, key: c.Input(algo.InputKey, graph.KeyType), report: map[string]graph.ID{}, learnt: l.decoder}
}

// build makes both chains, then a step of G and one of E.
func (s *step) build() {
	after := s.inferred()
	before := s.prior(s.key, s.Batch(s.x))
	s.report[reportStop] = s.Input(algo.InputStop, graph.T(graph.F32))
	s.report[reportPosteriorNorm], s.report[reportPriorNorm] = s.norm(after), s.norm(before)

	loss := s.Mean(s.learnt.loss(s.Context, s.x, after))
	s.report[reportRecon] = loss
	s.descend(generatorNet, s.cfg.Generator, loss)
	if s.cfg.Prior == EBM {
		low, high := s.Mean(s.energies(after)[0]), s.Mean(s.energies(before)[0])
		gap := s.Sub(low, high)
		s.report[reportPosteriorEnergy], s.report[reportPriorEnergy], s.report[reportEnergy] = low, high, gap
		s.descend(energyNet, s.cfg.Energy, gap)
	}
	s.write()
}

// inferred are z⁺: of the chain in the step, or of that before it.
func (s *step) inferred() graph.ID {
	if s.staged {
		return s.inference(s.Batch(s.x)).z
	}
	return s.posterior(s.key, s.x)
}

// descend takes a step of a network's weights against the gradient of loss, averaged
// over ranks.
func (s *step) descend(net string, a optim.Adam, loss graph.ID) {
	ps := s.Params(net)
	grads := ddp.Sync(s.Builder, s.World, net, s.Grad(loss, nn.IDs(ps)...))
	if s.cfg.Text != nil && net == generatorNet {
		grads, s.report[gradientOf(net)] = optim.ClipNorm(s.Context, grads, s.cfg.Text.Clip)
	} else {
		s.report[gradientOf(net)] = optim.Norm(s.Context, grads)
	}
	a.Step(s.Context, ps, grads)
}

// Step builds one training step for a rank that sees batch of world·batch samples.
func (m model) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("lebm", world, func(c *nn.Context) { newStep(c, m.cfg, batch).build() })
}

// Feeder fills the optimisers' schedules.
func (m model) Feeder(p exec.Program) func(step int64, epoch int) {
	var all []func(step int64, epoch int)
	for _, a := range m.cfg.optimisers() {
		all = append(all, a.Feeder(p))
	}
	return func(step int64, epoch int) {
		for _, feed := range all {
			feed(step, epoch)
		}
	}
}
