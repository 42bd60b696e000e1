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

// doubt is that of a number of two values' means over seeds, of each of which both were
// measured: by how much da times the one and db times the other, as the number follows them,
// differs from seed to seed. One seed does not show that: then each is taken to differ as
// other seeds say of it.
func (t Table) doubt(of, than Value, seeds []uint64, da, db float64) doubt {
	if len(seeds) > 1 {
		each := make([]float64, len(seeds))
		for i, seed := range seeds {
			each[i] = da*t.at(of, seed) + db*t.at(than, seed)
		}
		sd := stat.StdDev(each, nil)
		return doubt{stat.StdErr(sd, float64(len(each))), fmt.Sprintf("%s, and from seed to seed it differs by %s", seedCount(len(seeds)), digits(sd))}
	}
	byA, partA, why := t.differs(of, seeds[0])
	byB, partB, whyB := t.differs(than, seeds[0])
	if partB > partA {
		why = whyB
	}
	return doubt{math.Hypot(da*byA, db*byB), "1 seed, and seeds of " + why}
}

// differs is by how much a value of one seed may differ with others, which part of it that is,
// and who says so: the value itself, if it has several seeds, or else the row whose seeds differ
// by the largest part of their mean. A row of less than half the value's size is taken for one of
// half of it: seeds of larger values differ by more, but a value near 0 differs by any part of
// itself, and several times where the true one is 0, which says nothing of a larger one.
func (t Table) differs(v Value, seed uint64) (by, part float64, why string) {
	size := math.Abs(t.at(v, seed))
	if s := t.Spread(v); s.N > 1 {
		return s.SD, s.SD / size, s.differ(v.Row, size)
	}
	for _, name := range t.names() {
		s := t.Spread(Value{name, v.Measure})
		if p := s.SD / max(math.Abs(s.Mean), size/2); s.N > 1 && p > part {
			part, why = p, s.differ(name, size)
		}
	}
	return size * part, part, why
}

// differ says by how much seeds of a row differ: by a part of their mean, if that is not far
// below the size of what it is said of.
func (s Spread) differ(row string, size float64) string {
	if mean := math.Abs(s.Mean); mean > 0 && mean >= size/2 {
		return fmt.Sprintf("%s differ by %s %%", row, digits(math.Round(1000*s.SD/mean)/10))
	}
	return fmt.Sprintf("%s differ by %s", row, digits(s.SD))
}
