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
	partA, rowA := t.differs(of)
	partB, rowB := t.differs(than)
	byA, byB := da*t.at(of, seeds[0])*partA, db*t.at(than, seeds[0])*partB
	if partB > partA {
		partA, rowA = partB, rowB
	}
	return doubt{math.Hypot(byA, byB), fmt.Sprintf("1 seed, and seeds of %s differ by %s %%", rowA, digits(math.Round(1000*partA)/10))}
}

// differs is by which part of its mean a value differs from seed to seed: as it does itself,
// if it has several, or else as the row that differs most, and which row that is.
func (t Table) differs(v Value) (part float64, row string) {
	names := t.names()
	if t.Spread(v).N > 1 {
		names = []string{v.Row}
	}
	for _, name := range names {
		if s := t.Spread(Value{name, v.Measure}); s.N > 1 && s.SD/math.Abs(s.Mean) > part {
			part, row = s.SD/math.Abs(s.Mean), name
		}
	}
	return part, row
}
