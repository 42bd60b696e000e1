package cd

import (
	"ebtrain/ddp"
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

// Report has the loss and its terms, means over the global batch, and the norm of
// the gradient.
func (m Model) Report() []algo.Column {
	return algo.Columns([]string{"loss", "energy_data", "energy_model", algo.ReportStop, "grad_model"}, "loss", "grad_model")
}

// Feeder fills Adam's schedule.
func (m Model) Feeder(p exec.Program) func(step int64, epoch int) {
	return m.cfg.Adam.Feeder(p)
}

// Step builds one training step.
func (m Model) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("cd", world, func(c *nn.Context) { m.build(c, batch) })
}

func (m Model) build(c *nn.Context, batch int) {
	images := c.Input(algo.InputImages, graph.T(c.DType, append([]int{batch}, m.Picture.Slice()...)...))
	stop := c.Input(algo.InputStop, graph.T(c.DType))
	ps := m.Declare(c)
	p, v := grbm.Of(nn.IDs(ps)), m.Flat(c, images)
	g := grbm.Gibbs{Params: p, Key: c.Input(algo.InputKey, graph.KeyType), Purpose: philox.Negative}

	data := c.Mean(p.FreeEnergy(c, v))
	model := c.Mean(p.FreeEnergy(c, c.StopGrad(m.negative(c, g, v))))
	loss := c.Sub(data, model)
	grads := ddp.Sync(c.Builder, c.World, "model", c.Grad(loss, nn.IDs(ps)...))
	m.cfg.Adam.Step(c, ps, grads)
	algo.WriteReport(c, []graph.ID{loss, data, model, stop}, []graph.ID{optim.Norm(c, grads)})
}

// negative is v⁻, (B, Visible).
func (m Model) negative(c *nn.Context, g grbm.Gibbs, v graph.ID) graph.ID {
	if !m.cfg.Persistent {
		return g.FromVisible(c, m.cfg.Sweeps, v)
	}
	ch := newChains(c, g.Key, c.Batch(v), m.Hidden)
	v, h := g.FromHidden(c, m.cfg.Sweeps, ch.begin(c, g.Hidden(c, 2*m.cfg.Sweeps, v)))
	ch.keep(c, h)
	return v
}
