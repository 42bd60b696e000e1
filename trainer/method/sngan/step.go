package sngan

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Entries of the report besides algo.ReportStop. Losses and logits are means over
// the pictures of an update, those of D of its last.
const (
	reportD     = "discriminator" // loss of D
	reportG     = "generator"     // loss of G
	reportReal  = "real"          // ⟨D(v)⟩
	reportFake  = "fake"          // ⟨D(G(h))⟩ in the update of D
	reportNormD = "grad_discriminator"
	reportNormG = "grad_generator"
)

// Report are the entries of the report.
func (c Config) Report() []algo.Column {
	return algo.Columns([]string{reportD, reportG, reportReal, reportFake, algo.ReportStop, reportNormD, reportNormG}, reportD, reportG)
}

// Feeder fills the schedules of the optimisers. Step s of a run begins with update
// s·n of the discriminator.
func (c Config) Feeder(p exec.Program) func(step int64, epoch int) {
	n := c.Updates
	inputs := [][]float32{p.Input(c.generator().Input()).F32()}
	for k := range n {
		inputs = append(inputs, p.Input(c.discriminator().InputN(k)).F32())
	}
	return func(step int64, _ int) {
		a := c.Adam
		a.LR = c.rate().Rate(step)
		s := a.Schedule(step, 0)
		copy(inputs[0], s[:])
		for k := range n {
			s := a.ScheduleN(step, 0, k, n)
			copy(inputs[1+k], s[:])
		}
	}
}

// networks are G and D, in scopes of these names.
type networks interface {
	Generator(c *nn.Context, h graph.ID) (v graph.ID)
	Discriminator(c *nn.Context, v graph.ID) (logit graph.ID) // (N, 1)
}

// Subs of the latents of a step.
const (
	latentsOfD uint16 = iota // part k has those of its slots
	latentsOfG               // those of part 0
)

// step is a training step under construction.
type step struct {
	*nn.Context
	cfg     Config
	net     networks
	v, key  graph.ID // of all parts
	g, d    graph.ID // losses
	means   []graph.ID
	normG   graph.ID
	normD   graph.ID
	latents graph.ID // of D's updates, for each slot
}

// Step builds one training step for a rank that sees batch of the world·batch
// samples of the global batch.
func (c Config) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	if err := c.Net.Validate(); err != nil {
		return nil, nil, fmt.Errorf("sngan: %w", err)
	}
	return algo.TrainStep("sngan", world, func(ctx *nn.Context) { newStep(ctx, c, c.Net, batch).build() })
}

// newStep declares what a step reads. The networks are net, with the sizes of
// cfg.Net.
func newStep(ctx *nn.Context, cfg Config, net networks, batch int) *step {
	if n := cfg.Group(); batch < n || batch%n != 0 {
		ctx.Fail(fmt.Errorf("%d pictures on a rank cannot be cut into %d parts, one for each update of the discriminator", batch, n))
	}
	picture := cfg.Takes().Shape.Slice()
	s := &step{
		Context: ctx, cfg: cfg, net: net,
		v:   ctx.Input(algo.InputImages, graph.T(ctx.DType, append([]int{batch}, picture...)...)),
		key: ctx.Input(algo.InputKey, graph.KeyType),
	}
	s.latents = s.draw(latentsOfD, batch)
	return s
}

// draw is a latent for each slot.
func (s *step) draw(sub uint16, batch int) graph.ID {
	return s.Draw(s.key, graph.Normal, philox.Latent, sub, graph.T(s.DType, batch, s.cfg.Net.Latent))
}

// part are the slots of part k: k, k+n, k+2n …
func (s *step) part(x graph.ID, k int) graph.ID {
	return s.Slice(x, 0, k, s.Batch(x), s.cfg.Updates)
}

// build makes the update of G, those of D, and the report.
func (s *step) build() {
	s.updateG()
	for k := range s.cfg.Updates {
		s.updateD(k)
	}
	stop := s.Input(algo.InputStop, graph.T(graph.F32))
	algo.WriteReport(s.Context, append([]graph.ID{s.d, s.g}, append(s.means, stop)...), []graph.ID{s.normD, s.normG})
}

// updateG steps G against −⟨D(G(h))⟩.
func (s *step) updateG() {
	h := s.part(s.draw(latentsOfG, s.Batch(s.v)), 0)
	s.g = s.Neg(s.Mean(s.net.Discriminator(s.Context, s.net.Generator(s.Context, h))))
	s.normG = s.update(s.cfg.generator(), 0, s.g)
}

// updateD is the kth update of D, from 0, with part k: D sees data, then samples.
func (s *step) updateD(k int) {
	real := s.net.Discriminator(s.Context, s.part(s.v, k))
	fake := s.net.Discriminator(s.Context, s.StopGrad(s.net.Generator(s.Context, s.part(s.latents, k))))
	s.d = hinge(s.Context, real, fake)
	s.means = []graph.ID{s.Mean(real), s.Mean(fake)}
	s.normD = s.update(s.cfg.discriminator(), k, s.d)
}

// hinge is ⟨relu(1 − D(v))⟩ + ⟨relu(1 + D(G(h)))⟩ of logits.
func hinge(c *nn.Context, real, fake graph.ID) graph.ID {
	return c.Add(c.Mean(c.Relu(c.Shift(c.Neg(real), 1))), c.Mean(c.Relu(c.Shift(fake, 1))))
}

// update is the nth of an optimiser, of the network with its name, and the length
// of the averaged gradient.
func (s *step) update(a optim.Adam, nth int, loss graph.ID) (norm graph.ID) {
	ps := s.Params(a.Name)
	grads := ddp.Sync(s.Builder, s.World, a.Name, s.Grad(loss, nn.IDs(ps)...))
	a.StepN(s.Context, nth, ps, grads)
	return optim.Norm(s.Context, grads)
}
