package bism

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Names of the optimisers, which are in the names of their moments.
const (
	upperAdam = "upper"
	lowerAdam = "lower"
)

// inputRates holds the rates of all optimiser steps of a step: those of the
// K+N inner steps, then that of the upper one.
const inputRates = "rates"

// step is a training step under construction.
type step struct {
	drawer
	thetas, phis []nn.Param // the variables
	theta, phi   optim.State
	rates        []optim.Rates
	sharing      algo.Inner // of the unrolled steps
	lowerLoss    graph.ID   // G at the last of the K steps, else at the first unrolled one; 0 with neither
}

// newStep declares what a step of batch samples on each of c.World ranks reads.
func newStep(c *nn.Context, cfg Config, m latent.Model, batch int) *step {
	n := cfg.Net
	images := c.Input(algo.InputImages, graph.T(c.DType, batch, n.C, n.H, n.W))
	key := c.Input(algo.InputKey, graph.KeyType)
	s := &step{drawer: drawer{Context: c, cfg: cfg, model: m, draw: named(c, key),
		data: latent.Trained{Model: m}.Flat(c, images)}}
	if cfg.Objective == MDSM {
		s.levels = cfg.Levels.Levels(c, key, batch)
	}
	s.thetas, s.phis = m.Declare(c)
	s.theta = optim.Declare(c, upperAdam, s.thetas)
	s.phi = optim.State{P: nn.IDs(s.phis)}
	if cfg.Inner == Adam {
		s.phi = optim.Declare(c, lowerAdam, s.phis)
	}
	s.rates = optim.Rows(c, inputRates, cfg.LowerSteps+cfg.Unroll+1)
	return s
}

// build makes both levels and the report.
func (s *step) build() {
	phi := s.phi
	if s.cfg.LowerSteps > 0 {
		phi = s.kept(phi)
		phi.Keep(s.Context, lowerAdam, s.phis)
	}
	phi = s.unrolled(phi)
	s.Builder.Scope("upper", func() {
		loss := s.upper(phi.P)
		grads := s.average("upper", s.Grad(loss, s.theta.P...), algo.AllReduced)
		last := s.rates[len(s.rates)-1]
		s.cfg.adam().Step(s.Context, s.theta, s.cfg.Clipped(s.Context, grads), last).Keep(s.Context, upperAdam, s.thetas)
		s.report(loss, grads)
	})
}

// Step builds one training step for a rank that sees batch of world·batch
// samples.
func (t trainee) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("bism", world, func(c *nn.Context) { newStep(c, t.cfg, t.Model, batch).build() })
}

// Feeder fills the rates. Step n of the run begins with step n·K+1 of the lower
// level's optimiser; the unrolled steps count on from the K.
func (t trainee) Feeder(p exec.Program) func(step int64, epoch int) {
	return optim.RowsFeeder(p, inputRates, t.cfg.LowerSteps+t.cfg.Unroll+1, t.cfg.rates)
}

// rates are those of optimiser step i of a training step: of the K+N inner
// ones, or the upper one after them.
func (c Config) rates(i int, step int64) [2]float64 {
	switch {
	case i == c.LowerSteps+c.Unroll:
		return optim.AdamRates(c.upperRate().Rate(step), c.Beta1, c.Beta2, step+1)
	case c.Inner == SGD:
		return optim.DescentRates(c.lowerRate().Rate(step))
	}
	return optim.AdamRates(c.lowerRate().Rate(step), c.Beta1, c.Beta2, step*int64(c.LowerSteps)+int64(i)+1)
}
