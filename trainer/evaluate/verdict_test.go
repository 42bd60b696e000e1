package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/eval/compare"
)

// A row is blind to what it holds for no worse than real samples, whatever the samples
// are; what it sees and the samples do not beat says something of the samples.
func TestVerdict(t *testing.T) {
	row := func(title string, better compare.Better, samples, floor, noise, blurred, copies float64) comparisonRow {
		return comparisonRow{Name: title, Title: title, Better: better, Samples: &samples, Floor: &floor,
			Controls: map[string]float64{setNoise: noise, setBlurred: blurred, setCopies: copies}}
	}
	for name, tt := range map[string]struct {
		kid, recall [2]float64 // of samples and of the floor
		want        string
	}{
		"good samples": {[2]float64{3, 1}, [2]float64{0.7, 0.8}, `
not told from real pictures, since no worse than the floor:
kid	copies
recall	copies
`},
		"worse than one": {[2]float64{20, 1}, [2]float64{0.7, 0.8}, `
not told from real pictures, since no worse than the floor:
kid	copies
recall	copies

samples no better than a set that is known to be bad, in 1 of 4 comparisons:
blurred	by kid
`},
		"worse than half, which is not most": {[2]float64{99, 1}, [2]float64{0.7, 0.8}, `
not told from real pictures, since no worse than the floor:
kid	copies
recall	copies

samples no better than a set that is known to be bad, in 2 of 4 comparisons:
noise	by kid
blurred	by kid
`},
		"worse than all": {[2]float64{99, 1}, [2]float64{0, 0.8}, `
not told from real pictures, since no worse than the floor:
kid	copies
recall	copies

samples no better than a set that is known to be bad, in 4 of 4 comparisons; the samples are bad:
noise	by kid; recall
blurred	by kid; recall
`},
		"a row that sees nothing": {[2]float64{99, 98}, [2]float64{0.7, 0}, `
not told from real pictures, since no worse than the floor:
kid	noise, blurred, copies
recall	noise, blurred, copies
`},
	} {
		c := comparison{Sizes: map[string]int{setSamples: 9, setFloor: 9, setNoise: 9, setBlurred: 9, setCopies: 9}, Rows: []comparisonRow{
			row("kid", compare.Lower, tt.kid[0], tt.kid[1], 90, 10, 0), row("recall", compare.Higher, tt.recall[0], tt.recall[1], 0, 0.2, 1),
		}}
		c.judge()
		if got := verdict(&c); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// Without real samples that were not trained on nobody knows which of both it is.
func TestVerdictWithoutFloor(t *testing.T) {
	c := comparison{Sizes: map[string]int{setSamples: 9, setNoise: 9}, Notes: []string{"there is no floor"},
		Rows: []comparisonRow{{Title: "kid", Better: compare.Lower, Samples: new(3.0), Controls: map[string]float64{setNoise: 2}}}}
	c.judge()
	const want = "\nno worse than the samples: a row does not see what is wrong, or the samples are that bad:\nkid\tnoise\n\n"
	if got := verdict(&c); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Samples of latents from N(0, I) are not known to be bad: they say what a learnt prior does,
// and are no part of the count that says that samples are.
func TestVerdictOnPrior(t *testing.T) {
	const prior = "\nsamples no better than those of latents from N(0, I), in whose place the prior was learnt, by forward; reverse\n"
	for want, floor := range map[string]*float64{prior: new(10.0), "\nno worse than the samples: a row does not see what is wrong, or the samples are that bad:\nreverse\tten sentences\n" + prior: nil} {
		row := func(title string, ten float64) comparisonRow {
			return comparisonRow{Title: title, Better: compare.Lower, Samples: new(12.0), Floor: floor, Controls: map[string]float64{setNormal: 11.9, setTen: ten}}
		}
		c := comparison{Sizes: map[string]int{setSamples: 9, setNormal: 9, setFloor: 9, setTen: 9}, Rows: []comparisonRow{row("forward", 30), row("reverse", 40)}}
		if floor == nil {
			c.Rows[1].Controls[setTen] = 1
		}
		c.judge()
		if got := verdict(&c); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// What ± is stands below the table that has one, as a reader takes it for the error.
func TestSpreadIsExplained(t *testing.T) {
	for spread, want := range map[float64]bool{0: false, 0.5: true} {
		r := report{noun: "pictures", Quality: &comparison{Sizes: map[string]int{setSamples: 9}, Rows: []comparisonRow{{Title: "kid", Better: compare.Lower, Samples: new(3.0), Spread: spread}}}}
		var b strings.Builder
		r.addQuality(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) })
		if got := b.String(); strings.Contains(got, "3 ± 0.5") != want || strings.Contains(got, "\n± is between the random networks") != want {
			t.Errorf("a spread of %v: %s", spread, got)
		}
	}
}

// A floor of which one row has no number, as where it is too small for a Fréchet distance, is
// no floor of that row.
func TestVerdictOfEachRow(t *testing.T) {
	row := func(title string, floor *float64) comparisonRow {
		return comparisonRow{Title: title, Better: compare.Lower, Samples: new(3.0), Floor: floor, Controls: map[string]float64{setNoise: 9, setBlurred: 2, setCopies: 0}}
	}
	c := comparison{Sizes: map[string]int{setSamples: 9, setFloor: 3, setNoise: 9, setBlurred: 9, setCopies: 9}, Rows: []comparisonRow{row("frechet", nil), row("kid", new(1.0))}}
	c.judge()
	const want = `
not told from real pictures, since no worse than the floor:
kid	copies

samples no better than a set that is known to be bad, in 1 of 2 comparisons:
blurred	by kid

no worse than the samples: a row does not see what is wrong, or the samples are that bad:
frechet	blurred, copies
`
	if got := verdict(&c); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What depends on the number of pictures is compared with no floor of fewer.
func TestVerdictOfFewer(t *testing.T) {
	for floor, want := range map[int]string{9: `
not told from real pictures, since no worse than the floor:
KID × 1000	copies
sliced Wasserstein × 1000	copies

samples no better than a set that is known to be bad, in 2 of 4 comparisons:
blurred	by KID × 1000; sliced Wasserstein × 1000
`, 4: `
not told from real pictures, since no worse than the floor:
KID × 1000	copies

samples no better than a set that is known to be bad, in 1 of 2 comparisons:
blurred	by KID × 1000

no worse than the samples: a row does not see what is wrong, or the samples are that bad:
sliced Wasserstein × 1000	blurred, copies

the floor has 4 pictures and the sets beside it 9: it is in no verdict of sliced Wasserstein × 1000, which depend on their number: give --samples 4
`} {
		c := comparison{Sizes: map[string]int{}}
		for set, v := range map[string]float64{setSamples: 3, setFloor: 1, setNoise: 9, setBlurred: 2, setCopies: 0} {
			c.keep(set, 9, []compare.Value{{Row: compare.KID, Value: v}, {Row: compare.SWD, Value: v}})
		}
		c.Sizes[setFloor] = floor
		slices.SortFunc(c.Rows, func(a, b comparisonRow) int { return strings.Compare(a.Name, b.Name) })
		c.fewer(options{}, compare.LeastFrechet, "pictures")
		c.judge()
		if got := verdict(&c) + strings.Join(append(c.Notes, ""), "\n"); got != want {
			t.Errorf("a floor of %d: got\n%s\nwant\n%s", floor, got, want)
		}
	}
}

func verdict(c *comparison) string {
	var b strings.Builder
	c.addVerdict(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }, "pictures")
	return b.String()
}
