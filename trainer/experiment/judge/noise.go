package judge

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
)

// sure is how many standard errors a number must be from the end of what is claimed of it
// for the claim to be decided.
const sure = 2

// doubt is how far a number that seeds gave may be from that of all seeds.
type doubt struct {
	se  float64 // its standard error; 0 if nothing is known of it
	why string  // in words
}

// decided judges whether a number of n seeds is from lo to hi, if that can be told.
func decided(claim string, number float64, n int, d doubt, lo, hi float64) Verdict {
	if !d.tells(math.Min(math.Abs(number-lo), math.Abs(number-hi))) {
		return Verdict{claim, Undecided, fmt.Sprintf("%s: %s", digits(number), d.why)}
	}
	return inside(claim, Spread{N: n, Mean: number}, lo, hi)
}

// tells says whether what is so far from an end is not there by chance. An error that is no
// number, as where a seed has 0 below a fraction's line, tells nothing.
func (d doubt) tells(far float64) bool { return d.se == 0 || far > sure*d.se }

// doubt is that of a number of two values, from each seed of which both were measured, and
// one of their means: by how much it differs from seed to seed. One seed does not show that:
// it is taken to differ as the two values do, by what other seeds say of them.
func (t Table) doubt(of, than Value, seeds []uint64, number func(a, b float64) float64) doubt {
	if len(seeds) > 1 {
		each := make([]float64, len(seeds))
		for i, seed := range seeds {
			each[i] = number(t.at(of, seed), t.at(than, seed))
		}
		se := stat.StdErr(stat.StdDev(each, nil), float64(len(each)))
		return doubt{se, fmt.Sprintf("%s, and from seed to seed it differs by %s", seedCount(len(seeds)), digits(se*math.Sqrt(float64(len(each)))))}
	}
	both := []Value{of, than}
	a, b := t.at(of, seeds[0]), t.at(than, seeds[0])
	partA, rowA := t.differs(of.Measure, both)
	partB, rowB := t.differs(than.Measure, both)
	byA, byB := number(a*(1+partA), b)-number(a, b), number(a, b*(1+partB))-number(a, b)
	if partB > partA {
		partA, rowA = partB, rowB
	}
	return doubt{math.Hypot(byA, byB), fmt.Sprintf("1 seed, and seeds of %s differ by %s %%", rowA, digits(math.Round(1000*partA)/10))}
}

// differs is by which part of their mean seeds differ in a measure: in the rows of a claim
// that have several, or else in any row that has; the largest, and the row that it is of.
func (t Table) differs(measure string, claimed []Value) (part float64, row string) {
	look := func(name string) {
		if s := t.Spread(Value{name, measure}); s.N > 1 && s.SD/math.Abs(s.Mean) > part {
			part, row = s.SD/math.Abs(s.Mean), name
		}
	}
	for _, v := range claimed {
		look(v.Row)
	}
	if row != "" {
		return part, row
	}
	for _, name := range t.names() {
		look(name)
	}
	return part, row
}
