package optim

import (
	"ebtrain/ddp/exec"
	"ebtrain/trainer/setting"
)

// What a method that has one optimiser tells its users of it.

// Settings adds the learning rate and the moments.
func (a *Adam) Settings(s *setting.Set) {
	s.Float("lr", &a.LR, setting.Positive, "learning rate of Adam")
	betas(s, &a.Beta1, &a.Beta2)
}

func betas(s *setting.Set, beta1, beta2 *float64) {
	s.Float("beta1", beta1, setting.Moment, "Adam's beta1")
	s.Float("beta2", beta2, setting.Moment, "Adam's beta2")
}

// Feeder fills the schedule of the nth step, from 0, that a program takes. What
// it returns is told the number of the optimiser's step, and the epoch.
func (a Adam) Feeder(p exec.Program, nth int) func(step int64, epoch int) {
	in := p.Input(a.InputN(nth))
	return func(step int64, epoch int) { SetRow(in, 0, a.rates(step, epoch)) }
}

// Feeders is Feeder for the n steps that the optimiser takes in each of a program's: it
// is told the number of the program's step.
func (a Adam) Feeders(p exec.Program, n int) func(step int64, epoch int) {
	all := make([]func(int64, int), n)
	for nth := range all {
		all[nth] = a.Feeder(p, nth)
	}
	return func(step int64, epoch int) {
		for nth, feed := range all {
			feed(step*int64(n)+int64(nth), epoch)
		}
	}
}

// Scheduled is Adam with a rate that may change, as a config embeds it.
type Scheduled struct {
	LR            float64
	Schedule      Kind // constant or cosine
	ScheduleSteps int  // of a cosine
	Beta1, Beta2  float64
}

// Schedules are those that Scheduled may have.
func Schedules() []Kind { return []Kind{Constant, Cosine} }

// Settings adds all of it; lr is the help of --lr.
func (c *Scheduled) Settings(s *setting.Set, lr string) {
	s.Float("lr", &c.LR, setting.Positive, lr)
	setting.Word(s, "schedule", &c.Schedule, Schedules(), "of the learning rate: constant, or cosine, which ends at 1e-6")
	s.Int("schedule-steps", &c.ScheduleSteps, 0, 1<<30, "steps of a cosine schedule, whatever --steps says: a shorter run ends before its end")
	setting.For(s, "schedule", &c.Schedule, Cosine, "schedule-steps")
	betas(s, &c.Beta1, &c.Beta2)
}

// Rate is the schedule of LR.
func (c Scheduled) Rate() Schedule {
	return Schedule{Kind: c.Schedule, Base: c.LR, Steps: int64(c.ScheduleSteps)}
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
