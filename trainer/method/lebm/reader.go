package lebm

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/sentence"
)

// reader is what a trained model of sentences can do.
type reader struct{ cfg Config }

// Takes says what it reads.
func (r reader) Takes() algo.Inputs {
	return algo.Inputs{Shape: graph.D(1, 1, r.cfg.Text.longest()), Words: r.cfg.Text.words()}
}

func (r reader) Report() []algo.Column { return model(r).Report() }

func (r reader) Feeder(p exec.Program) func(step int64, epoch int) { return model(r).Feeder(p) }

// Diagnose says which chain has come apart.
func (r reader) Diagnose(report []float64) string { return model(r).Diagnose(report) }

// Lengths are those that batches have.
func (r reader) Lengths() []int { return r.cfg.Text.Lengths }

// Step is a step of the longest sentences.
func (r reader) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return r.StepOf(r.cfg.Text.longest(), world, batch)
}

// StepOf builds one training step for a rank that sees batch of world·batch
// sentences, padded to length tokens.
func (r reader) StepOf(length, world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("lebm", world, func(c *nn.Context) {
		s := newReading(c, r.cfg, length, batch)
		s.staged = r.cfg.Text.Staged
		s.build()
	})
}

// newReading declares what a step of batch sentences on each of c.World ranks reads.
func newReading(c *nn.Context, cfg Config, length, batch int) *step {
	b := sentence.Input(c, batch, length)
	s := &step{latents: latents{c, cfg, nil}, x: b.Tokens, key: c.Input(algo.InputKey, graph.KeyType), report: map[string]graph.ID{}}
	whole := written{cfg.Text.writer(cfg.Net.Latent), b, sentence.Drop{}}
	s.decoder = whole // the posterior's chain leaves nothing out: its slope is one function
	whole.drop.Key = s.key
	s.learnt = whole
	return s
}

// Recon builds −log p(x|z) of n sentences and how many words of each are told, twice:
// z⁺ as step 0 would infer it from the sentence, and z⁻ that knows nothing of it.
func (r reader) Recon(length, n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	s := newReading(c, r.cfg, length, n)
	s.staged = r.cfg.Text.Staged
	w := s.decoder.(written)
	w.outputs(c, s.inferred(), algo.OutputLoss, algo.OutputTold)
	w.outputs(c, s.prior(s.key, n), algo.OutputBlind, algo.OutputBlindTold)
	return c.Commit()
}

// Sample writes n sentences of latents from the prior: its chain, begun at N(0, I), is
// one program run K₀ times, and then a word is written a transition.
func (r reader) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	z := chain.Var("latents", graph.T(graph.F32, n, r.cfg.Net.Latent))
	stages, err := model(r).drawing(z)
	if err != nil {
		return chain.Plan{}, err
	}
	plan, err := r.cfg.Text.writer(r.cfg.Net.Latent).Sample(generatorNet, n, r.cfg.Text.longest(), z)
	plan.Vars, plan.Stages = append([]nn.Variable{z}, plan.Vars...), append(stages, plan.Stages...)
	return plan, err
}

// primed is a reader whose prior is learnt.
type primed struct{ reader }

// SampleNormal writes n sentences of latents from N(0, I), where the prior's chain
// begins: what they lack beside Sample's is the prior.
func (p primed) SampleNormal(mode nn.Mode, n int) (chain.Plan, error) {
	p.cfg.Prior = Gaussian
	return p.Sample(mode, n)
}
