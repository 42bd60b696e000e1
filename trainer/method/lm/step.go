package lm

import (
	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
	"ebtrain/trainer/model/sentence"
)

// network begins the names of the weights.
const network = "lm"

// Entries of the report.
const (
	reportNLL        = "nll"        // of a sentence, the mean over the global batch
	reportWords      = "words"      // of a sentence, its end included
	reportPerplexity = "perplexity" // of a word: exp of the sum of all NLL over all words
	reportNorm       = "grad_lm"    // length of the averaged gradient, before it is clipped
)

// model is the trained model.
type model struct{ cfg Config }

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model { return model{*c} }

// Takes is what the model reads.
func (m model) Takes() algo.Inputs {
	return algo.Inputs{Shape: graph.D(1, 1, m.cfg.longest()), Words: m.cfg.words()}
}

// Report are the entries of the report.
func (m model) Report() []algo.Column {
	return algo.Columns([]string{reportNLL, reportWords, algo.ReportStop, reportPerplexity, reportNorm}, reportNLL, reportPerplexity)
}

// Feeder fills Adam's schedule.
func (m model) Feeder(p exec.Program) func(step int64, epoch int) { return m.cfg.Adam.Feeder(p) }

// Lengths are those that batches have.
func (m model) Lengths() []int { return m.cfg.Lengths }

// Step is a step of the longest sentences.
func (m model) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return m.StepOf(m.cfg.longest(), world, batch)
}

// StepOf builds one training step for a rank that sees batch of world·batch
// sentences, padded to length tokens.
func (m model) StepOf(length, world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("lm", world, func(c *nn.Context) { m.build(c, length, batch) })
}

// nll are the losses of the sentences of b.
func (m model) nll(c *nn.Context, b sentence.Batch, d sentence.Drop) (nll graph.ID) {
	c.Scope(network, func() { nll = m.cfg.writer().NLL(c, b, 0, d) })
	return nll
}

// build makes a step in c.
func (m model) build(c *nn.Context, length, batch int) {
	b := sentence.Input(c, batch, length)
	loss := c.Mean(m.nll(c, b, sentence.Drop{Key: c.Input(algo.InputKey, graph.KeyType)}))
	ps := c.Params(network)
	grads := ddp.Sync(c.Builder, c.World, network, c.Grad(loss, nn.IDs(ps)...))
	clipped, norm := optim.ClipNorm(c, grads, m.cfg.Clip)
	words := c.Mean(b.Counts(c))
	algo.WriteReport(c, []graph.ID{loss, words, c.Input(algo.InputStop, graph.T(graph.F32))}, []graph.ID{perplexity(c, loss, words), norm})
	m.cfg.Adam.Step(c, ps, clipped)
}

// perplexity is that of all ranks' words.
func perplexity(c *nn.Context, nll, words graph.ID) graph.ID {
	if c.World > 1 {
		all := c.AllReduce(collective.Mean, "perplexity", nll, words)
		nll, words = all[0], all[1]
	}
	return c.Exp(c.Div(nll, words))
}

// NLL builds −log p of n sentences, and how many words of each are told.
func (m model) NLL(length, n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	b := sentence.Input(c, n, length)
	c.Scope(network, func() {
		nll, told := m.cfg.writer().Told(c, b, 0)
		c.Output(algo.OutputLoss, nll)
		c.Output(algo.OutputTold, told)
	})
	return c.Commit()
}
