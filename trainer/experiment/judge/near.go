package judge

import (
	"fmt"
	"math"
)

// Number is what a publication, or another program, has for a value: Value, or
// everything from Value to To.
type Number struct {
	Value float64
	Tol   float64 // how far the mean may be from it; 0: it is stated and not judged
	To    float64 // if not 0, the end of a range
}

func (n Number) String() string {
	switch {
	case n.To != 0:
		return digits(n.Value) + " to " + digits(n.To)
	case n.Tol != 0:
		return digits(n.Value) + " ± " + digits(n.Tol)
	}
	return digits(n.Value)
}

// Judged says whether a mean can be outside of it.
func (n Number) Judged() bool { return n.Tol != 0 || n.To != 0 }

// ends are the least and the largest mean that agree.
func (n Number) ends() (lo, hi float64) {
	if n.To != 0 {
		return min(n.Value, n.To), max(n.Value, n.To)
	}
	return n.Value - n.Tol, n.Value + n.Tol
}

// Near claims that a value is a number.
type Near struct {
	Value Value
	Want  Number
}

// Values implements Check.
func (c Near) Values() []Value { return []Value{c.Value} }

// Judge implements Check.
func (c Near) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s is %s", c.Value, c.Want)
	if v := absent(t, claim, c.Values()); v != nil {
		return *v
	}
	lo, hi := c.Want.ends()
	return inside(claim, t.Spread(c.Value), lo, hi)
}

// inside judges whether a mean is from lo to hi.
func inside(claim string, s Spread, lo, hi float64) Verdict {
	text := fmt.Sprintf("%s (%s)", digits(s.Mean), seedCount(s.N))
	switch {
	case s.Mean < lo:
		return verdict(claim, false, "%s, too low by %s", text, digits(lo-s.Mean))
	case s.Mean > hi:
		return verdict(claim, false, "%s, too high by %s", text, digits(s.Mean-hi))
	}
	return verdict(claim, !math.IsNaN(s.Mean), "%s", text)
}
