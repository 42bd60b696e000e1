package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// saturated is a cell whose energy saturated.
type saturated struct {
	row  string
	seed uint64
	from float64 // the step from which on it is seen
}

// saturated are those of the finished cells.
func (s *Sheet) saturated() (all []saturated) {
	rule := s.e.Saturates
	if rule == nil {
		return nil
	}
	for _, f := range s.finished {
		if from, ok := rests(f.status.Measured.Curves, *rule); ok {
			all = append(all, saturated{f.Row, f.Seed, from})
		}
	}
	return all
}

// rests says from which step on all curves of a rule stay where they end; false if one has
// no points, or they do so at too few.
func rests(curves map[string][]measure.Point, rule plan.Saturation) (from float64, ok bool) {
	least := math.MaxInt
	for _, name := range rule.Curves {
		points := curves[name]
		n := 0 // points at the end that are near the last
		for n < len(points) && math.Abs(points[len(points)-1-n].Y-points[len(points)-1].Y) <= rule.Within {
			n++
		}
		if n < rule.Least {
			return 0, false
		}
		if least = min(least, n); least == n {
			from = points[len(points)-n].X
		}
	}
	return from, len(rule.Curves) > 0
}

// saturation says which energies saturated, and when; nothing if none did.
func (p *page) saturation(s *Sheet) {
	all := s.saturated()
	if len(all) == 0 {
		return
	}
	var steps []float64
	for _, one := range all {
		steps = append(steps, one.from)
	}
	slices.Sort(steps)
	var each []string
	for _, from := range slices.Compact(steps) {
		these := slices.DeleteFunc(slices.Clone(all), func(one saturated) bool { return one.from != from })
		each = append(each, fmt.Sprintf("from step %.0f: %s", from, cells(these)))
	}
	p.add("\nEnergies that saturated, %s. From there on none of %s is further than %v from where it ends, as where everything has the same energy and nothing is learnt by it any more. What is measured of these cells is in the means, and named beside the verdicts.\n",
		strings.Join(each, "; "), strings.Join(titles(s.e.Saturates.Curves), ", "), s.e.Saturates.Within)
}

func titles(columns []string) []string {
	words := make([]string, len(columns))
	for i, c := range columns {
		words[i] = title(c)
	}
	return words
}

// cells names cells, those of a row together.
func cells(all []saturated) string {
	var words []string
	for i, one := range all {
		if i > 0 && all[i-1].row == one.row {
			words[len(words)-1] += fmt.Sprintf(" and %d", one.seed)
			continue
		}
		words = append(words, fmt.Sprintf("%s seed %d", one.row, one.seed))
	}
	return strings.Join(words, ", ")
}
