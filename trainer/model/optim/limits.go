package optim

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/setting"
)

// Limits keep the steps of an optimiser short: the first ones, which no moments
// steady yet, and those of long gradients.
type Limits struct {
	// Warmup is how many steps of a run, from its first, have a smaller learning rate:
	// (s+1)/(Warmup+1) of it in step s, from 0.
	Warmup int `json:",omitempty"`
	// Clip is the longest that the gradients of a step may be, as one vector of all that
	// the optimiser steps; longer ones are scaled to it. 0 leaves them as they are.
	Clip float64 `json:",omitempty"`
}

// maxWarmup bounds what can only be a typing mistake.
const maxWarmup = 1 << 30

// Warmups adds the setting of a method that clips gradients itself.
func (l *Limits) Warmups(s *setting.Set) {
	s.Int("warmup", &l.Warmup, 0, maxWarmup, "steps of the run, its first, in which learning rates grow to what they are; 0 is none")
}

func (l *Limits) clips(s *setting.Set, whose string) {
	s.Float("clip", &l.Clip, setting.AtLeast0, "largest norm of "+whose+", to which longer ones are scaled; 0 leaves them as they are")
}

// Settings adds both; whose gradients are clipped is for the help.
func (l *Limits) Settings(s *setting.Set, whose string) {
	l.Warmups(s)
	l.clips(s, whose)
}

// Validate says what is wrong with them.
func (l Limits) Validate() error {
	if l.Warmup < 0 || l.Warmup > maxWarmup {
		return fmt.Errorf("want from 0 to %d steps of warm-up, got %d", maxWarmup, l.Warmup)
	}
	if !(l.Clip >= 0) || !finite(l.Clip) {
		return fmt.Errorf("want a limit of the gradients' norm of at least 0, got %v", l.Clip)
	}
	return nil
}

// warmed is the share of a learning rate that a step of the run has, from 0.
func warmed(step int64, warmup int) float64 { return min(1, float64(step+1)/float64(warmup+1)) }

// Clipped are gradients, averaged over ranks, no longer than Clip.
func (l Limits) Clipped(c *nn.Context, grads []graph.ID) []graph.ID {
	if l.Clip != 0 {
		grads, _ = ClipNorm(c, grads, l.Clip)
	}
	return grads
}
