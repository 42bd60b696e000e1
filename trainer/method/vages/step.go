package vages

import (
	"ebtrain/ddp"
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

// inputRates holds the rates of all optimiser steps of a step: those of the K lower
// ones, then that of the upper one.
const inputRates = "rates"

// step is a training step under construction.
type step struct {
	drawer
	thetas, phis []nn.Param // the variables
	theta, phi   optim.State
	rates        []optim.Rates
	lowerLoss    graph.ID // G at the last of the K steps; 0 with none
}

// newStep declares what a step of batch samples on each of c.World ranks reads.
func newStep(c *nn.Context, cfg Config, t latent.Trained, batch int) *step {
	n := cfg.Net
	images := c.Input(algo.InputImages, graph.T(c.DType, batch, n.C, n.H, n.W))
	key := c.Input(algo.InputKey, graph.KeyType)
	s := &step{drawer: drawer{Context: c, cfg: cfg, model: t.Model, data: t.Flat(c, images), key: key}}
	if cfg.Objective == MDSM {
		s.levels = cfg.Levels.Levels(c, key, batch)
	}
	s.thetas, s.phis = t.Model.Declare(c)
	s.theta = optim.Declare(c, upperAdam, s.thetas)
	s.phi = optim.State{P: nn.IDs(s.phis)}
	if cfg.steps() > 0 {
		s.phi = optim.Declare(c, lowerAdam, s.phis)
	}
	s.drawer.theta = s.theta.P
	s.rates = optim.Rows(c, inputRates, cfg.steps()+1)
	return s
}

// build makes both levels and the report.
func (s *step) build() {
	phi := s.phi
	if s.cfg.steps() > 0 {
		phi = s.fitted(phi)
		phi.Keep(s.Context, lowerAdam, s.phis)
	}
	s.Builder.Scope("upper", func() {
		surrogate, losses := s.upper(s.estimate(phi.P))
		grads := s.gradient(s.Mean(surrogate))
		last := s.rates[len(s.rates)-1]
		s.cfg.Pure().Step(s.Context, s.theta, s.cfg.Clipped(s.Context, grads), last).Keep(s.Context, upperAdam, s.thetas)
		s.report(s.Mean(losses), grads)
	})
}

// gradient is the mean over ranks of a surrogate's gradient in θ.
func (s *step) gradient(surrogate graph.ID) []graph.ID {
	return ddp.Sync(s.Builder, s.World, "upper", s.Grad(surrogate, s.theta.P...))
}

// Step builds one training step for a rank that sees batch of world·batch
// samples.
func (t trainee) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("vages", world, func(c *nn.Context) { newStep(c, t.cfg, t.trained, batch).build() })
}

// Feeder fills the rates. Step n of the run begins with step n·K+1 of the lower
// level's optimiser.
func (t trainee) Feeder(p exec.Program) func(step int64, epoch int) {
	return optim.RowsFeeder(p, inputRates, t.cfg.steps()+1, t.cfg.rates)
}

// rates are those of optimiser step i of a training step: of the K lower ones, or
// the upper one after them.
func (c Config) rates(i int, step int64) [2]float64 {
	k := c.steps()
	if i == k {
		return optim.AdamRates(c.Rate().Rate(step), c.Beta1, c.Beta2, step+1)
	}
	return optim.AdamRates(c.posteriorRate().Rate(step), c.Beta1, c.Beta2, step*int64(k)+int64(i)+1)
}
