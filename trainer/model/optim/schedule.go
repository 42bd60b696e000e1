package optim

import (
	"fmt"
	"math"
)

// Kind says how a learning rate changes.
type Kind string

const (
	Constant Kind = "constant" // Base
	Cosine   Kind = "cosine"   // from Base to Least over Steps steps, by half a cosine; then Least
	Linear   Kind = "linear"   // from Base to 0 over Steps steps; then 0
)

// Least is where a cosine ends.
const Least = 1e-6

// Schedule is a learning rate as a pure function of the place in the run.
type Schedule struct {
	Kind  Kind
	Base  float64 // at the first step, but for the warm-up
	Steps int64   // of a cosine or a line
	// Warmup is how many steps, the first, have a smaller rate than Kind gives them (Limits).
	Warmup int
}

// Rate is the learning rate of a step, from 0.
func (s Schedule) Rate(step int64) float64 { return s.planned(step) * warmed(step, s.Warmup) }

// planned is Rate but for the warm-up. The cosine is PyTorch's CosineAnnealingLR, in
// closed form.
func (s Schedule) planned(step int64) float64 {
	switch s.Kind {
	case Cosine:
		done := float64(min(step, s.Steps)) / float64(s.Steps)
		return Least + (s.Base-Least)*(1+math.Cos(math.Pi*done))/2
	case Linear:
		return s.Base * (1 - float64(min(step, s.Steps))/float64(s.Steps))
	}
	return s.Base
}

// Validate says what is wrong with the schedule.
func (s Schedule) Validate() error {
	if !(s.Base > 0) || !finite(s.Base) {
		return fmt.Errorf("want a learning rate above 0, got %v", s.Base)
	}
	switch s.Kind {
	case Constant:
		return nil
	case Cosine, Linear:
		if s.Steps < 1 {
			return fmt.Errorf("want a %s schedule over at least one step, got %d", s.Kind, s.Steps)
		}
		if s.Kind == Cosine && s.Base < Least {
			return fmt.Errorf("want a learning rate of at least %v, where a cosine schedule ends, got %v", Least, s.Base)
		}
		return nil
	}
	return fmt.Errorf("want a learning-rate schedule that is %s, %s or %s, got %q", Constant, Cosine, Linear, s.Kind)
}
