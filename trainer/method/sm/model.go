package sm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
)

// Model is the model of a config that fits its data and is valid.
func (c *Config) Model() algo.Model {
	t := trainee{*c}
	if c.Net.Kind == EBM {
		return pictures{t}
	}
	return units{t, grbm.Machine{Size: c.Net.grbm(), Picture: t.Takes().Shape}}
}

// units is a GRBM, trained: it can do what any machine can.
type units struct {
	trainee
	grbm.Machine
}

// Takes is that of both.
func (u units) Takes() algo.Inputs { return u.trainee.Takes() }

// pictures is the visible energy-based model, trained.
type pictures struct{ trainee }

// reading is a graph over n pictures that trains nothing.
func (p pictures) reading(n int) (*nn.Context, graph.ID) {
	c, z := nn.NewContext(nn.Eval, 1), p.cfg.Net
	return c, c.Input(algo.InputImages, graph.T(graph.F32, n, z.C, z.H, z.W))
}

// Energies are E(v), as logit and as energy.
func (p pictures) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	c, v := p.reading(n)
	e := c.Reshape(p.cfg.Net.trunk().VisibleEnergy(c, v), graph.D(n, 1))
	c.Output(algo.OutputLogit, e)
	c.Output(algo.OutputEnergy, e)
	return c.Commit()
}

// Score is −∇E(v).
func (p pictures) Score(n int) (*graph.Graph, error) {
	c, v := p.reading(n)
	c.Output(algo.OutputScore, network{p.cfg.Net.trunk()}.score(c, v))
	return c.Commit()
}

// Sample is annealed Langevin dynamics.
func (p pictures) Sample(_ nn.Mode, n int) (chain.Plan, error) {
	return p.cfg.Net.trunk().Sample(p.cfg.sampler(), n)
}
