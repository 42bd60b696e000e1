// Package optim builds optimiser steps into graphs.
//
// There are two kinds. A step of Adam reads the newest values of parameters and
// moments from an nn.Context and gives them new values, so that whatever follows
// in the same graph sees the stepped parameters. A Rule (PureAdam, Descent) is a
// pure function of a State, a gradient and Rates: it assigns nothing and can be
// differentiated, which an unrolled lower level needs; Keep assigns the states
// that are to last. Both have the same moments, by name and by value.
//
// What changes from step to step (learning rate, bias corrections) enters through
// one small input whose value is a pure function of the step number, so a resume
// needs nothing but that number.
//
// Values of this package may be used from any goroutine; a Context belongs to
// one.
package optim

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Adam is Adam [Kingma and Ba 2015] as PyTorch's, with L2 weight decay added
// to the gradient:
//
//	g ← g·min(1, Clip/‖g‖), where Clip is not 0
//	g ← g + WeightDecay·p
//	m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²
//	p ← p − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε),  t = 1, 2, …
type Adam struct {
	Name         string // of the optimiser, unique in a model: "energy"
	LR           float64
	Beta1, Beta2 float64
	Eps          float64
	WeightDecay  float64
	Decay        float64 // the learning rate is LR·Decay^epoch
	Limits
}

// Validate says what is wrong with the settings.
func (a Adam) Validate() error {
	switch {
	case !(a.LR > 0) || !finite(a.LR):
		return fmt.Errorf("%s: want a learning rate above 0, got %v", a.Name, a.LR)
	case !(a.Beta1 >= 0 && a.Beta1 < 1) || !(a.Beta2 >= 0 && a.Beta2 < 1):
		return fmt.Errorf("%s: want Adam's betas in [0, 1), got %v and %v", a.Name, a.Beta1, a.Beta2)
	case !(float32(a.Eps) > 0) || !finite(a.Eps):
		return fmt.Errorf("%s: want Adam's epsilon above 0 in float32, got %v", a.Name, a.Eps)
	case !(a.WeightDecay >= 0) || !finite(a.WeightDecay):
		return fmt.Errorf("%s: want a weight decay of at least 0, got %v", a.Name, a.WeightDecay)
	case !(a.Decay > 0 && a.Decay <= 1):
		return fmt.Errorf("%s: want a learning-rate decay in (0, 1], got %v", a.Name, a.Decay)
	}
	if err := a.Limits.Validate(); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// finite says whether x is a number in float32.
func finite(x float64) bool { return math.Abs(x) <= math.MaxFloat32 }

// Input is the name of the graph input that carries the schedule, of type
// ScheduleType.
func (a Adam) Input() string { return a.InputN(0) }

// InputN is Input for the nth step, from 0, of a graph that takes several.
func (a Adam) InputN(nth int) string {
	if nth == 0 {
		return "adam." + a.Name
	}
	return fmt.Sprintf("adam.%s.%d", a.Name, nth)
}

// ScheduleType is the type of the schedule: {lr/(1−β₁ᵗ), 1/√(1−β₂ᵗ)}.
var ScheduleType = graph.T(graph.F32, 2)

// Schedule is the value of the input for a step of a run (from 0) in epoch (from
// 0), where the optimiser takes one step in each.
func (a Adam) Schedule(step int64, epoch int) [2]float32 { return a.ScheduleN(step, epoch, 0, 1) }

// ScheduleN is Schedule for the nth (from 0) of the n steps that the optimiser takes
// in a step of the run.
func (a Adam) ScheduleN(step int64, epoch, nth, n int) [2]float32 {
	r := a.rates(step, epoch, nth, n)
	return [2]float32{float32(r[0]), float32(r[1])}
}

// rates is ScheduleN before it is rounded.
func (a Adam) rates(step int64, epoch, nth, n int) [2]float64 {
	rate := a.LR * math.Pow(a.Decay, float64(epoch)) * warmed(step, a.Warmup)
	return AdamRates(rate, a.Beta1, a.Beta2, step*int64(n)+int64(nth)+1)
}

// Step moves each parameter against its gradient. With β₁ = 0 the first moment
// is the gradient itself and is not kept.
func (a Adam) Step(c *nn.Context, params []nn.Param, grads []graph.ID) { a.StepN(c, 0, params, grads) }

// StepN is Step for the nth step, from 0, of a graph that takes several: each
// has a schedule of its own, and the next one's parameters and moments are
// those that this one leaves.
func (a Adam) StepN(c *nn.Context, nth int, params []nn.Param, grads []graph.ID) {
	sched := c.Cast(c.Input(a.InputN(nth), ScheduleType), c.DType)
	rate := c.Reshape(c.Slice(sched, 0, 0, 1, 1), graph.D())
	correct := c.Reshape(c.Slice(sched, 0, 1, 2, 1), graph.D())
	grads = a.Clipped(c, grads)
	c.Scope("adam."+a.Name, func() {
		for i, p := range params {
			a.stepOne(c, p, grads[i], rate, correct)
		}
	})
}

func (a Adam) stepOne(c *nn.Context, p nn.Param, g, rate, correct graph.ID) {
	if a.WeightDecay != 0 {
		g = c.Add(g, c.Scale(p.ID, a.WeightDecay))
	}
	s := c.Shape(p.ID)
	m := g
	if a.Beta1 != 0 {
		m = average(c, c.Moment(p.Name+".m", s), g, a.Beta1)
		c.Update(p.Name+".m", m)
	}
	v := average(c, c.Moment(p.Name+".v", s), c.Square(g), a.Beta2)
	c.Update(p.Name+".v", v)
	c.Set(p.Name, moved(c, p.ID, m, v, a.Eps, Rates{rate, correct}))
}

// average is the moment old after x: βold + (1−β)x.
func average(c *nn.Context, old, x graph.ID, beta float64) graph.ID {
	return c.Add(c.Scale(old, beta), c.Scale(x, 1-beta))
}

// moved is p − rate·m/(√v·correct + ε).
func moved(c *nn.Context, p, m, v graph.ID, eps float64, t Rates) graph.ID {
	denom := c.Shift(c.Mul(c.Sqrt(v), t.Correct), eps)
	return c.Sub(p, c.Div(c.Mul(m, t.Rate), denom))
}
