package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bound claims that values are from Lo to Hi; an infinite end is none.
type Bound struct {
	Of     []Value
	Lo, Hi float64
}

// Values implements Check.
func (c Bound) Values() []Value { return c.Of }

// Judge implements Check.
func (c Bound) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s %s", names(c.Of), limits(c.Lo, c.Hi))
	if v := absent(t, claim, c.Of); v != nil {
		return *v
	}
	var found []string
	holds := true
	for _, v := range c.Of {
		one := inside("", t.Spread(v), c.Lo, c.Hi)
		if one.State == Fails {
			holds = false
			found = append(found, fmt.Sprintf("%s: %s", v.Row, one.Detail))
		}
	}
	if holds && len(c.Of) == 1 {
		return verdict(claim, true, "%s", digits(t.Spread(c.Of[0]).Mean))
	}
	if holds {
		return verdict(claim, true, "all %d", len(c.Of))
	}
	return verdict(claim, false, "%s", strings.Join(found, "; "))
}

// limits are the ends of a range in words.
func limits(lo, hi float64) string {
	switch {
	case math.IsInf(lo, -1):
		return "at most " + digits(hi)
	case math.IsInf(hi, 1):
		return "at least " + digits(lo)
	}
	return "from " + digits(lo) + " to " + digits(hi)
}

// names are values in words, a measure or a row that all share said once.
func names(values []Value) string {
	if oneRow(values) {
		return labels(values) + " of " + values[0].Row
	}
	if oneMeasure(values) {
		return values[0].Measure + " of " + labels(values)
	}
	return labels(values)
}

// labels are what tells values from each other.
func labels(values []Value) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = label(values, v)
	}
	return strings.Join(words, ", ")
}

// label is what tells a value from the others.
func label(values []Value, v Value) string {
	switch {
	case oneRow(values):
		return v.Measure
	case oneMeasure(values):
		return v.Row
	}
	return v.String()
}

func oneRow(values []Value) bool {
	return !slices.ContainsFunc(values, func(v Value) bool { return v.Row != values[0].Row })
}

func oneMeasure(values []Value) bool {
	return !slices.ContainsFunc(values, func(v Value) bool { return v.Measure != values[0].Measure })
}

// Gap claims that Of is larger than Than by Lo to Hi, in the mean over the seeds of which both
// were measured.
type Gap struct {
	Of, Than Value
	Lo, Hi   float64
}

// Values implements Check.
func (c Gap) Values() []Value { return []Value{c.Of, c.Than} }

// Judge implements Check.
func (c Gap) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s above %s by %s to %s", c.Of, c.Than, digits(c.Lo), digits(c.Hi))
	return t.paired(claim, c.Of, c.Than, func(a, b float64) number { return number{a - b, 1, -1} }, c.Lo, c.Hi)
}

// Ratio claims that Of is at most Most times To, in the mean over the seeds of which both
// were measured.
type Ratio struct {
	Of, To Value
	Most   float64
}

// Values implements Check.
func (c Ratio) Values() []Value { return []Value{c.Of, c.To} }

// Judge implements Check.
func (c Ratio) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s at most %s times %s", c.Of, digits(c.Most), c.To)
	return t.paired(claim, c.Of, c.To, func(a, b float64) number { return number{a / b, 1 / b, -a / (b * b)} }, math.Inf(-1), c.Most)
}

// number is one of two values, and its derivatives by them.
type number struct{ value, da, db float64 }

// paired judges whether a number of two values is from lo to hi. Seeds that only one of them
// has are left out: they would be compared with others.
func (t Table) paired(claim string, of, than Value, from func(a, b float64) number, lo, hi float64) Verdict {
	both := []Value{of, than}
	if v := absent(t, claim, both); v != nil {
		return *v
	}
	seeds := t.common(both)
	if len(seeds) == 0 {
		return Verdict{claim, NotRun, noCommon}
	}
	n := from(t.mean(of, seeds), t.mean(than, seeds))
	return decided(claim, n.value, len(seeds), t.doubt(of, than, seeds, n.da, n.db), lo, hi)
}
