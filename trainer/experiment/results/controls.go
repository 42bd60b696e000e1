package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"ebtrain/trainer/run/rundir"
)

// quality is what the report reads of cell.Measured.Quality.
type quality struct {
	Rows []struct {
		Title, Better string
		Floor         *rundir.Number
		Controls      map[string]rundir.Number
		Blind         []string // sets that are no worse than the samples
	}
}

// beside is one measure of samples: what it says of real ones and of sets that are
// known to be bad, over all cells, and which rows it does not tell from such a set.
type beside struct {
	title, better string
	values        map[string][]float64 // by set
	blind         map[string][]string  // rows, by set
}

// realSamples is the set of real samples that are not the reference.
const realSamples = "real samples"

// besides are those of the finished cells, and the names of their bad sets.
func (s *Sheet) besides() (all []beside, sets []string, err error) {
	for _, f := range s.finished {
		if f.status.Measured.Quality == nil {
			continue
		}
		var q quality
		text, err := json.Marshal(f.status.Measured.Quality)
		if err == nil {
			err = json.Unmarshal(text, &q)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s/%s seed %d: what samples were compared with cannot be read: %w", s.e.Name, f.Row, f.Seed, err)
		}
		for _, r := range q.Rows {
			i := slices.IndexFunc(all, func(b beside) bool { return b.title == r.Title })
			if i < 0 {
				i = len(all)
				all = append(all, beside{r.Title, r.Better, map[string][]float64{}, map[string][]string{}})
			}
			all[i].add(f.Row, r.Floor, r.Controls, r.Blind)
			sets = append(sets, slices.Collect(maps.Keys(r.Controls))...)
		}
	}
	slices.Sort(sets)
	return all, slices.Compact(sets), nil
}

// add adds what a cell of a row says.
func (b beside) add(row string, floor *rundir.Number, controls map[string]rundir.Number, blind []string) {
	if floor != nil {
		b.values[realSamples] = append(b.values[realSamples], float64(*floor))
	}
	for set, v := range controls {
		b.values[set] = append(b.values[set], float64(v))
	}
	for _, set := range blind {
		if !slices.Contains(b.blind[set], row) {
			b.blind[set] = append(b.blind[set], row)
		}
	}
}

// text is the cell of a set.
func (b beside) text(set string) string {
	v := b.values[set]
	if len(v) == 0 {
		return "–"
	}
	text := spread(v)
	if rows := b.blind[set]; len(rows) > 0 {
		text += ", no worse than " + strings.Join(rows, ", ")
	}
	return text
}

// spread is the mean of v, or from where to where it goes: a set that is of a row's own
// model is another one for each row.
func spread(v []float64) string {
	const alike = 0.1
	least, most := slices.Min(v), slices.Max(v)
	if most-least > alike*max(math.Abs(least), math.Abs(most)) {
		return fmt.Sprintf("%.4g to %.4g", least, most)
	}
	return fmt.Sprintf("%.4g", stat.Mean(v, nil))
}

// controls is the table of real samples and of bad sets, if samples were compared.
func (p *page) controls(s *Sheet) error {
	all, sets, err := s.besides()
	if err != nil || len(all) == 0 {
		return err
	}
	p.add("\nBy the same measures, real samples that are not the reference, and sets that are known to be bad. Where such a set is no worse than a row's samples, the measure does not tell them apart: it is blind there, or the samples are that bad.\n\n")
	p.head(append([]string{"measure", "better", realSamples}, sets...)...)
	for _, b := range all {
		cells := []string{b.title, b.better, b.text(realSamples)}
		for _, set := range sets {
			cells = append(cells, b.text(set))
		}
		p.row(cells...)
	}
	return nil
}
