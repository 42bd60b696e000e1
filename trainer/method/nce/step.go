package nce

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Model trains a machine, and can do what a machine can.
type Model struct {
	grbm.Machine
	cfg Config
}

// The variable of a, (1).
const (
	noiseScope = "contrast"
	noiseName  = "log_z"
)

// Report has the loss and its terms, means over the global batch; of the
// variational kind with a step on q also the loss of the last, before it. log_z
// is a, before the step.
func (m Model) Report() []algo.Column {
	names := []string{"loss", "data", "noise", algo.ReportStop}
	same := []string{"log_z", "grad_model"}
	if m.lowers() > 0 {
		names, same = append(names, "posterior"), append(same, "grad_posterior")
	}
	return algo.Columns(append(names, same...), "loss", "log_z", "grad_model")
}

// lowers is the number of steps on q in a step.
func (m Model) lowers() int {
	if !m.cfg.Variational {
		return 0
	}
	return m.cfg.PosteriorSteps
}

// Feeder fills the schedules of both optimisers.
func (m Model) Feeder(p exec.Program) func(step int64, epoch int) {
	upper, lower := m.cfg.Adam.Feeder(p), m.cfg.posterior().Feeders(p, m.lowers())
	return func(step int64, epoch int) {
		upper(step, epoch)
		lower(step, epoch)
	}
}

// Step builds one training step.
func (m Model) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("nce", world, func(c *nn.Context) { m.build(c, batch) })
}

func (m Model) build(c *nn.Context, batch int) {
	images := c.Input(algo.InputImages, graph.T(c.DType, append([]int{batch}, m.Picture.Slice()...)...))
	ps := m.Declare(c)
	var a graph.ID
	c.Scope(noiseScope, func() { a = c.Weight(noiseName, graph.D(1), nn.Zeros) })
	s := &step{Context: c, m: m, p: grbm.Of(nn.IDs(ps)), a: a, key: c.Input(algo.InputKey, graph.KeyType), v: m.Flat(c, images)}
	if m.cfg.Variational {
		s.lower()
	}
	s.upper(append(ps, c.Params(noiseScope)...))
	s.means = append([]graph.ID{s.loss, s.data, s.noise, c.Input(algo.InputStop, graph.T(c.DType))}, s.means...)
	s.same = append([]graph.ID{a, s.grad}, s.same...)
	algo.WriteReport(s.Context, s.means, s.same)
}

// step is a training step under construction.
type step struct {
	*nn.Context
	m   Model
	p   grbm.Params
	q   grbm.Posterior // of the variational kind
	a   graph.ID
	key graph.ID
	v   graph.ID // data, (B, Visible)

	loss, data, noise, grad graph.ID   // of the upper level
	means, same             []graph.ID // of the lower: to be averaged over ranks, and equal on all
}

// upper steps the model and a.
func (s *step) upper(ps []nn.Param) {
	y := s.Draw(s.key, graph.Normal, philox.Contrast, 0, s.Type(s.v))
	k := uint16(s.m.lowers())
	s.data = s.Mean(s.Softplus(s.Neg(s.ratio(s.v, 1, k))))
	s.noise = s.Mean(s.Softplus(s.ratio(y, s.m.cfg.NoiseLatents, k+1)))
	s.loss = s.Add(s.data, s.noise)
	var grads []graph.ID
	grads, s.grad = optim.Averaged(s.Context, "model", s.loss, ps)
	s.m.cfg.Adam.Step(s.Context, ps, grads)
}
