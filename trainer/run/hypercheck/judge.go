package hypercheck

import "math"

// Verdict is what central differences say of a gradient, the worst last.
type Verdict int

const (
	Right   Verdict = iota
	Unclear         // the upper loss has kinks that all steps may have met: differences of it tell nothing
	Wrong
)

func (v Verdict) String() string {
	switch v {
	case Right:
		return "ok"
	case Unclear:
		return "cannot tell (kinks)"
	}
	return "WRONG"
}

// steps are the steps of central differences, relative to the network's size, the
// likeliest first: in float64 the best is near the third root of the machine's
// precision, 1e-5; how near depends on the curvature of J, and on how far its next
// kink is.
func steps() []float64 { return []float64{1e-5, 1e-4, 1e-6, 1e-3, 1e-7} }

// likely is the step whose allowance is asked of the first that agrees.
const likely = 1e-4

// allowed is how far central differences of step h may be from the gradient of a
// network whose slopes are of that size: DifferencesTolerance, and besides what 16
// units in the last place of J come to at that step. Where J is large beside its
// slope, differences cannot see more.
func allowed(upper, slope, h float64) float64 {
	return min(1e-3, DifferencesTolerance+ratio(16*0x1p-52*math.Abs(upper)/h, slope))
}

// try is a central difference of one step: how far it is from the gradient, with its
// sign, and how far it may be. Both are relative.
type try struct{ off, allowed float64 }

func (t try) passes() bool { return math.Abs(t.off) <= t.allowed }

// agrees says that two tries are of one slope, as far as they can see.
func (t try) agrees(with try) bool { return math.Abs(t.off-with.off) <= t.allowed+with.allowed }

// judge says what the tries of one direction show, and the try that shows it. A kink
// between two points moves their difference, by another amount at each step that is not
// much longer than it is far, so a try that fails alone says nothing. The gradient is
// wrong where two tries that fail agree with each other and with all that pass: those
// are of small steps, and see less. (So one near kink can seem a wrong gradient, along
// one direction: see conclude.)
func judge(tries []try) (Verdict, try) {
	best, right := nearest(tries), false
	for _, t := range tries {
		if t.passes() && (!right || t.allowed < best.allowed) {
			best, right = t, true
		}
	}
	switch against, wrong := refuting(tries); {
	case wrong:
		return Wrong, against
	case right:
		return Right, best
	case math.IsInf(best.off, 0):
		return Wrong, best
	}
	return Unclear, best
}

// judged is what was found along one direction. All its numbers are 0 on ranks that
// did not look.
type judged struct {
	verdict      float64 // a Verdict, to be reduced with the rest
	off, allowed float64
}

// judgedOf is what the tries of a direction show.
func judgedOf(tries []try) judged {
	v, t := judge(tries)
	return judged{float64(v), math.Abs(t.off), t.allowed}
}

// worse says that a is a worse finding than b: another verdict, or farther off.
func (a judged) worse(b judged) bool {
	if a.verdict != b.verdict {
		return a.verdict > b.verdict
	}
	return ratio(a.off, a.allowed) > ratio(b.off, b.allowed)
}

// nearest is the try that is least far off.
func nearest(tries []try) try {
	best := try{math.Inf(1), DifferencesTolerance}
	for _, t := range tries {
		if math.Abs(t.off) < math.Abs(best.off) {
			best = t
		}
	}
	return best
}

// refuting is the sharper of two tries that show a gradient to be wrong.
func refuting(tries []try) (try, bool) {
	for i, a := range tries {
		for _, b := range tries[:i] {
			if a.passes() || b.passes() || !a.agrees(b) || !allAgree(tries, a, b) {
				continue
			}
			if b.allowed < a.allowed {
				a = b
			}
			return a, true
		}
	}
	return try{}, false
}

// allAgree says that each try that passes agrees with a and b, too.
func allAgree(tries []try, a, b try) bool {
	for _, t := range tries {
		if t.passes() && !(t.agrees(a) && t.agrees(b)) {
			return false
		}
	}
	return true
}
