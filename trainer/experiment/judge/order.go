package judge

import (
	"fmt"
	"maps"
	"math"
	"strings"
)

// Order claims that values rise from each to the next, by Margin at least: in the mean of
// the seeds of which all of them were measured, and for every one of these seeds.
type Order struct {
	Rising []Value
	Margin float64
}

// Values implements Check.
func (c Order) Values() []Value { return c.Rising }

// Judge implements Check.
func (c Order) Judge(t Table) Verdict {
	claim := c.claim()
	if v := absent(t, claim, c.Rising); v != nil {
		return *v
	}
	seeds := t.common(c.Rising)
	if len(seeds) == 0 {
		return Verdict{claim, NotRun, noCommon}
	}
	var wrong, unsure []string
	for i, v := range c.Rising[1:] {
		short, doubt := c.step(t, c.Rising[i], v, seeds)
		wrong, unsure = append(wrong, short...), append(unsure, doubt...)
	}
	switch {
	case len(wrong) > 0:
		return verdict(claim, false, "%s", strings.Join(wrong, "; "))
	case len(unsure) > 0:
		return Verdict{claim, Undecided, strings.Join(unsure, "; ")}
	case len(seeds) == 1:
		return verdict(claim, true, "for 1 seed")
	}
	return verdict(claim, true, "for %s and in the mean", seedCount(len(seeds)))
}

// step judges one rise: what is short, for certain in the mean or where the mean rises in
// some seed, or what cannot be told. A step that falls for certain fails the claim, whatever
// the others do.
func (c Order) step(t Table, before, v Value, seeds []uint64) (wrong, unsure []string) {
	mean := t.mean(v, seeds) - t.mean(before, seeds)
	if d := t.doubt(v, before, seeds, 1, -1); !d.tells(math.Abs(mean - c.Margin)) {
		return nil, []string{fmt.Sprintf("%s: %s", c.both(before, v, t.mean(before, seeds), t.mean(v, seeds)), d.why)}
	}
	if len(seeds) > 1 {
		wrong = c.short("in the mean", before, v, t.mean(before, seeds), t.mean(v, seeds))
	}
	for _, seed := range seeds {
		wrong = append(wrong, c.short(seedList([]uint64{seed}), before, v, t.at(before, seed), t.at(v, seed))...)
	}
	return wrong, nil
}

// short says by how much values do not rise from a to b.
func (c Order) short(where string, before, v Value, a, b float64) []string {
	if b > a && b-a >= c.Margin {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s, short by %s", where, c.both(before, v, a, b), digits(a+c.Margin-b))}
}

func (c Order) both(before, v Value, a, b float64) string {
	return fmt.Sprintf("%s is %s, %s is %s", label(c.Rising, before), digits(a), label(c.Rising, v), digits(b))
}

// noCommon says why values cannot be compared seed by seed.
const noCommon = "no seed of which all of them were measured"

func (c Order) claim() string {
	text := strings.ReplaceAll(labels(c.Rising), ", ", " < ")
	if oneRow(c.Rising) {
		text = c.Rising[0].Row + ": " + text
	} else if oneMeasure(c.Rising) {
		text = c.Rising[0].Measure + ": " + text
	}
	if c.Margin > 0 {
		text += fmt.Sprintf(", each by at least %s", digits(c.Margin))
	}
	return text
}

// Worse claims that each of the rows Bad is worse than each of the rows Than, by
// at least By in the mean over the seeds of which both were measured. A bad row of which all
// seeds diverged is worse than any; of one of which some did the others are judged.
type Worse struct {
	Measure   string
	Bad, Than []string
	By        float64
	LowIsGood bool
}

// Values implements Check.
func (c Worse) Values() []Value {
	return append(Rows(c.Measure, c.Bad...), Rows(c.Measure, c.Than...)...)
}

// Judge implements Check.
func (c Worse) Judge(t Table) Verdict {
	claim := fmt.Sprintf("%s of %s worse than of %s by at least %s", c.Measure, strings.Join(c.Bad, ", "), strings.Join(c.Than, ", "), digits(c.By))
	judged, finite, diverged := c.split(t)
	if v := absent(judged, claim, append(Rows(c.Measure, finite...), Rows(c.Measure, c.Than...)...)); v != nil {
		return *v
	}
	some := partly(t, finite)
	least, wrong, unsure, apart := c.compare(t, finite)
	switch {
	case len(wrong) > 0:
		return verdict(claim, false, "%s", strings.Join(append(wrong, some...), "; "))
	case len(apart) > 0:
		return Verdict{claim, NotRun, noCommon + ": " + strings.Join(apart, "; ")}
	case len(unsure) > 0:
		return Verdict{claim, Undecided, strings.Join(append(unsure, some...), "; ")}
	}
	var detail []string
	if len(finite) > 0 {
		detail = append(detail, fmt.Sprintf("by at least %s", digits(least)))
	}
	if len(diverged) > 0 {
		detail = append(detail, strings.Join(diverged, ", ")+" diverged")
	}
	return verdict(claim, true, "%s", strings.Join(append(detail, some...), "; "))
}

// split tells the bad rows that diverged from those that are to be compared. In the table
// that it gives none of the latter diverged.
func (c Worse) split(t Table) (judged Table, finite, diverged []string) {
	judged = maps.Clone(t)
	for _, name := range c.Bad {
		row := t[name]
		if t.Spread(Value{name, c.Measure}).N == 0 && len(row.Diverged) > 0 {
			diverged = append(diverged, name)
			continue
		}
		finite = append(finite, name)
		if len(row.Diverged) > 0 {
			row.Diverged = nil
			judged[name] = row
		}
	}
	return judged, finite, diverged
}

// partly says of which rows which seeds diverged.
func partly(t Table, rows []string) (words []string) {
	for _, name := range rows {
		if seeds := t[name].Diverged; len(seeds) > 0 {
			words = append(words, fmt.Sprintf("%s diverged (%s)", name, seedList(seeds)))
		}
	}
	return words
}

// compare says of which rows the bad one is not worse enough, of which that cannot be told,
// and which have no seed in common; and the least distance.
func (c Worse) compare(t Table, bad []string) (least float64, wrong, unsure, apart []string) {
	least = math.Inf(1)
	sign := -1.0
	if c.LowIsGood {
		sign = 1
	}
	for _, b := range bad {
		for _, g := range c.Than {
			both := Rows(c.Measure, b, g)
			seeds := t.common(both)
			if len(seeds) == 0 {
				apart = append(apart, b+" and "+g)
				continue
			}
			x, y := t.mean(both[0], seeds), t.mean(both[1], seeds)
			by := sign * (x - y)
			least = min(least, by)
			text := fmt.Sprintf("%s is %s, %s is %s", b, digits(x), g, digits(y))
			switch doubt := t.doubt(both[0], both[1], seeds, sign, -sign); {
			case !doubt.tells(math.Abs(by - c.By)):
				unsure = append(unsure, text+": "+doubt.why)
			case !(by > 0 && by >= c.By):
				wrong = append(wrong, fmt.Sprintf("%s, short by %s", text, digits(c.By-by)))
			}
		}
	}
	return least, wrong, unsure, apart
}
