package optim

import (
	"errors"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/setting"
)

// What a method that has one optimiser tells its users of it.

// Settings adds the learning rate, the moments and the limits.
func (a *Adam) Settings(s *setting.Set) {
	a.Unclipped(s)
	a.clips(s, "each optimiser's gradient")
}

// Unclipped is Settings of a method that clips gradients itself.
func (a *Adam) Unclipped(s *setting.Set) {
	s.Float("lr", &a.LR, setting.Positive, "learning rate of Adam")
	betas(s, &a.Beta1, &a.Beta2)
	a.Warmups(s)
}

func betas(s *setting.Set, beta1, beta2 *float64) {
	s.Float("beta1", beta1, setting.Moment, "Adam's beta1")
	s.Float("beta2", beta2, setting.Moment, "Adam's beta2")
}

// Feeder fills the schedule of a program that takes one step. What it returns is
// told the number of the program's step, and the epoch.
func (a Adam) Feeder(p exec.Program) func(step int64, epoch int) { return a.Feeders(p, 1) }

// Feeders is Feeder for the n steps that the optimiser takes in each of a program's.
func (a Adam) Feeders(p exec.Program, n int) func(step int64, epoch int) {
	in := make([]*exec.Tensor, n)
	for nth := range in {
		in[nth] = p.Input(a.InputN(nth))
	}
	return func(step int64, epoch int) {
		for nth := range in {
			SetRow(in[nth], 0, a.rates(step, epoch, nth, n))
		}
	}
}

// Scheduled is Adam with a rate that may change, as a config embeds it.
type Scheduled struct {
	LR            float64
	Schedule      Kind // constant or cosine
	ScheduleSteps int  // of a cosine
	Beta1, Beta2  float64
	Limits        // of the upper level's gradient, where there are two
}

// Schedules are those that Scheduled may have.
func Schedules() []Kind { return []Kind{Constant, Cosine} }

// Settings adds all of it; lr is the help of --lr, and whose gradient is clipped that of
// --clip.
func (c *Scheduled) Settings(s *setting.Set, lr, whose string) {
	s.Float("lr", &c.LR, setting.Positive, lr)
	setting.Word(s, "schedule", &c.Schedule, Schedules(), "of the learning rate: constant, or cosine, which ends at 1e-6")
	s.Int("schedule-steps", &c.ScheduleSteps, 0, 1<<30, "steps of a cosine schedule, whatever --steps says: a shorter run ends before its end")
	setting.For(s, "schedule", &c.Schedule, Cosine, "schedule-steps")
	betas(s, &c.Beta1, &c.Beta2)
	c.Limits.Settings(s, whose)
}

// Validate says what is wrong with the moments, the limits and the rate of LR.
func (c Scheduled) Validate() error {
	return errors.Join(c.Rate().Validate(), c.Pure().Validate(), c.Limits.Validate())
}

// Rate is the schedule of LR.
func (c Scheduled) Rate() Schedule {
	return Schedule{Kind: c.Schedule, Base: c.LR, Steps: int64(c.ScheduleSteps), Warmup: c.Warmup}
}

// RateOf is the schedule of what may have a rate of its own; 0 is none.
func (c Scheduled) RateOf(own float64) Schedule {
	s := c.Rate()
	if own != 0 {
		s.Base = own
	}
	return s
}

// Pure is the rule.
func (c Scheduled) Pure() PureAdam { return PureAdam{Beta1: c.Beta1, Beta2: c.Beta2, Eps: 1e-8} }
