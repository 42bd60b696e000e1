// Package jump notices losses that jump: by two orders of magnitude, from one step to
// the next. Where they come back nothing else tells of it, and yet Adam's second moments
// of such a step hold the weights that made it still for a long time: with β₂ = 0.9 a
// gradient that was 10⁸ times its usual size does so for 350 steps.
package jump

import "math"

const (
	// factor is how many times its largest recent size makes a loss one that has jumped.
	// What methods do in their first hundreds of steps is below 6.
	factor = 100
	// block is how many steps a part of the recent ones has: these and the part before
	// are the recent ones.
	block = 64
	// least is how many values are needed to say what is usual: one alone may be a
	// difference that is nearly 0 by chance.
	least = 2
)

// Jump is a loss that has jumped.
type Jump struct {
	Step   int64
	Loss   string
	Value  float64
	Before float64 // its largest size in the recent steps
}

// Watch sees the losses of a run. It is a function of the values that it has seen, so one
// that was shown the steps before a resume goes on as if there had been none.
type Watch struct {
	losses []loss
}

// loss is what is known of one.
type loss struct {
	name        string
	block       int64 // number of the part that the last value is in
	now, before part  // that part, and the one before it
	told        bool
}

// part is the values of some steps.
type part struct {
	size   float64 // the largest
	values int
}

// New is a Watch over losses of these names.
func New(names []string) *Watch {
	w := &Watch{losses: make([]loss, len(names))}
	for i, name := range names {
		w.losses[i].name = name
	}
	return w
}

// See takes the values of a step, by name, and says which loss has jumped: of several
// the one that jumped furthest, since they have one cause. Each is told of once.
func (w *Watch) See(step int64, values map[string]float64) (found Jump, some bool) {
	furthest := 0.0
	for i := range w.losses {
		l := &w.losses[i]
		v, ok := values[l.name]
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) { // what ends a run says so itself
			continue
		}
		usual := l.usual(step)
		if usual > 0 && !l.told && math.Abs(v) >= factor*usual {
			l.told, some = true, true
			if far := math.Abs(v) / usual; far > furthest {
				furthest, found = far, Jump{Step: step, Loss: l.name, Value: v, Before: usual}
			}
		}
		l.now = part{max(l.now.size, math.Abs(v)), l.now.values + 1}
	}
	return found, some
}

// usual is the largest size in the recent steps before this one, 0 if too few of them are
// known: of steps before a resume there may be a line for every hundredth only.
func (l *loss) usual(step int64) float64 {
	if b := step / block; b != l.block {
		l.block, l.before, l.now = b, l.now, part{}
	}
	if l.before.values+l.now.values < least {
		return 0
	}
	return max(l.before.size, l.now.size)
}
