package bidvl

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/loop"
	"ebtrain/trainer/nn"
	"ebtrain/trainer/optim"
)

// network is what BiDVL asks of a family of networks.
type network interface {
	Energy(c *nn.Context, v graph.ID) (logit, energy graph.ID)
	Inference(c *nn.Context, v graph.ID) (mean, logVar graph.ID)
	Generator(c *nn.Context, h graph.ID) graph.ID
}

// Report names the entries of the step's report. All are means over the global
// batch, except the norms of the averaged gradients.
func (c Config) Report() []string {
	return []string{"upper", "lower", "energy_data", "energy_fake", "energy_gen", "latent", "recon", "kl", loop.ReportStop,
		"grad_energy", "grad_inference", "grad_generator"}
}

// Feed fills the schedules of the optimisers.
func (c Config) Feed(p exec.Program, step int64, epoch int) {
	for _, a := range []optim.Adam{c.Upper, c.Lower} {
		s := a.Schedule(step, epoch)
		copy(p.Input(a.Input()).F32(), s[:])
	}
}

// step is a training step under construction.
type step struct {
	*nn.Context
	cfg    Config
	net    network
	v      graph.ID // data
	key    graph.ID
	means  map[string]graph.ID // scalars to be averaged over ranks
	norms  map[string]graph.ID // scalars equal on all ranks
	latent graph.ID            // ĥ of the upper level
}

// Step builds one training step for a rank that sees batch of the world·batch
// samples of the global batch.
func (c Config) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	ctx := nn.NewContext(nn.Train, world)
	newStep(ctx, c, c.Net, batch).build()
	g, err := ctx.Commit()
	if err != nil {
		return nil, nil, fmt.Errorf("bidvl: %w", err)
	}
	return g, ctx.Variables(), nil
}

// newStep declares what a step reads. The networks are net, with the sizes of
// cfg.Net.
func newStep(ctx *nn.Context, cfg Config, net network, batch int) *step {
	n := cfg.Net
	s := &step{
		Context: ctx, cfg: cfg, net: net,
		v:     ctx.Input(loop.InputImages, graph.T(ctx.DType, batch, n.Channels, n.Size, n.Size)),
		key:   ctx.Input(loop.InputKey, graph.KeyType),
		means: map[string]graph.ID{loop.ReportStop: ctx.Input(loop.InputStop, graph.T(ctx.DType))},
		norms: map[string]graph.ID{},
	}
	s.latent = s.draw(philox.Latent, 0)
	return s
}

// build makes both levels, in the order of the config, and the report.
func (s *step) build() {
	if s.cfg.Order == UpperFirst {
		s.upper()
		s.lower()
	} else {
		s.lower()
		s.upper()
	}
	s.report()
}

// draw is a standard normal latent for each sample.
func (s *step) draw(p philox.Purpose, sub uint16) graph.ID {
	return s.Draw(s.key, graph.Normal, p, sub, graph.T(s.DType, s.Batch(s.v), s.cfg.Net.Latent))
}

// upper steps E [Eq. 14]:
//
//	⟨E(v)⟩ − ⟨E(v̂)⟩,  v̂ = G(ĥ) detached.
func (s *step) upper() {
	net := s.net
	fake := s.StopGrad(net.Generator(s.Context, s.latent))
	data, gen := meanEnergy(s.Context, net, s.v), meanEnergy(s.Context, net, fake)
	loss := s.Sub(data, gen)
	s.means["energy_data"], s.means["energy_fake"], s.means["upper"] = data, gen, loss
	ps := s.Params("energy")
	grads := s.sync("energy", s.Grad(loss, nn.IDs(ps)...))
	s.cfg.Upper.Step(s.Context, ps, grads)
}

// lower steps ω = (Q, G) [Eq. 13]:
//
//	⟨E(v̂)⟩ + λ_h⟨‖μ(v̂) − ĥ‖²⟩ + r′⟨‖v − G(h)‖² + KL(q(h|v) ‖ p(h))⟩
//
// with h = μ(v) + σ(v)⊙ε, E frozen, and Q's weights frozen in the latent term,
// so that its gradient reaches G only.
func (s *step) lower() {
	net, c := s.net, s.Context
	latent := s.latent
	if s.cfg.FreshLatent {
		latent = s.draw(philox.Latent, 1)
	}
	fake := net.Generator(c, latent)
	gen := meanEnergy(c, net, fake)

	mean, logVar := net.Inference(c, s.v)
	h := reparameterise(c, mean, logVar, s.draw(philox.Posterior, 0))
	recon := meanSquare(c, s.v, net.Generator(c, h))
	kl := klPrior(c, mean, logVar)

	c.Frozen = true
	fakeMean, _ := net.Inference(c, fake)
	c.Frozen = false
	match := meanSquare(c, fakeMean, latent)

	loss := c.Add(c.Add(gen, c.Scale(match, s.cfg.latentWeight())), c.Scale(c.Add(recon, kl), s.cfg.VAEWeight))
	s.means["energy_gen"], s.means["latent"], s.means["recon"], s.means["kl"], s.means["lower"] = gen, match, recon, kl, loss

	q, g := c.Params("inference"), c.Params("generator")
	ps := append(append([]nn.Param(nil), q...), g...)
	grads := c.Grad(loss, nn.IDs(ps)...)
	gq := s.sync("inference", grads[:len(q)])
	gg := s.sync("generator", grads[len(q):])
	s.cfg.Lower.Step(c, ps, append(append([]graph.ID(nil), gq...), gg...))
}

// sync averages a network's gradients over ranks and notes their norm.
func (s *step) sync(net string, grads []graph.ID) []graph.ID {
	grads = ddp.Sync(s.Builder, s.World, net, grads)
	var total graph.ID
	for i, g := range grads {
		sq := s.Sum(s.Square(g))
		if i == 0 {
			total = sq
		} else {
			total = s.Add(total, sq)
		}
	}
	s.norms["grad_"+net] = s.Sqrt(total)
	return grads
}

// report averages the scalars over ranks, in one small all-reduce.
func (s *step) report() {
	var means, norms []graph.ID
	for _, name := range s.cfg.Report() {
		if id, ok := s.means[name]; ok {
			means = append(means, s.Reshape(id, graph.D(1)))
		} else {
			norms = append(norms, s.Reshape(s.norms[name], graph.D(1)))
		}
	}
	all := s.Concat(0, means...)
	if s.World > 1 {
		all = s.AllReduce(collective.Mean, "losses", all)[0]
	}
	s.Output(loop.OutputReport, s.Concat(0, append([]graph.ID{all}, norms...)...))
}
