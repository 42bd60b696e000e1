package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/trained"
)

// table is what is shown of several checkpoints: a row for each, a column for each number.
type table []tableRow

// tableRow is one checkpoint: its report, or why there is none.
type tableRow struct {
	step     int64
	report   *report
	diverged string
}

// number is one that a checkpoint is compared by.
type number struct {
	name   string
	value  float64
	better compare.Better // "": neither way
	floor  *float64       // that of real samples; nil: none
}

// rowNeighbour is the row of the distance to the nearest training sample.
const rowNeighbour = "neighbour"

// numbers are those of a report, in the order of the whole one.
func (r *report) numbers() (all []number) {
	add := func(name string, better compare.Better, value *float64) {
		if value != nil {
			all = append(all, number{name: name, value: *value, better: better})
		}
	}
	add("rmse", compare.Lower, r.RMSEBatch)
	add("rmse_running", compare.Lower, r.RMSERunning)
	add("ll", compare.Higher, r.LL)
	add("fisher", compare.Lower, r.Fisher)
	add("critic", compare.Higher, r.Critic) // its estimate is a supremum: a better critic comes nearer to it
	add("loss", compare.Lower, r.Loss)
	add("posterior_gap", compare.Lower, r.PosteriorGap)
	if s := r.Sentences; s != nil {
		add("nll", compare.Lower, &s.NLL)
		add("perplexity", compare.Lower, &s.Perplexity)
		add("accuracy", compare.Higher, &s.Accuracy)
	}
	if s := r.Recollection; s != nil {
		add("nll_given", compare.Lower, &s.Given.NLL)
		add("nll_blind", "", &s.Blind.NLL) // lowest where latents say nothing
	}
	add("probe", compare.Higher, r.Probe)
	for _, e := range r.Energies {
		add("energy "+e.Of, "", &e.Mean)
	}
	for _, a := range r.AUROC {
		better := compare.Higher
		if a.Against == otherSamples { // as good as data are not told from them
			better = ""
		}
		add("auroc "+a.Against, better, &a.Value)
	}
	if r.Quality != nil {
		for _, row := range r.Quality.Rows {
			better := row.Better
			if row.Name == rowNeighbour { // copies are near, but noise is farther than any good samples
				better = ""
			}
			if row.Samples != nil {
				all = append(all, number{row.Name, *row.Samples, better, row.Floor})
			}
		}
	}
	return all
}

// columns are the names of all numbers, in the order in which they were met, and of each
// the row that is best by it, -1 where neither way is better, no row has it or there is one row
// alone.
func (t table) columns() (names []string, best []int) {
	var value []float64
	for i, row := range t {
		if row.report == nil {
			continue
		}
		for _, n := range row.report.numbers() {
			c := slices.Index(names, n.name)
			if c < 0 {
				c = len(names)
				names, best, value = append(names, n.name), append(best, -1), append(value, 0)
			}
			if n.better != "" && len(t) > 1 && !math.IsNaN(n.value) && (best[c] < 0 || n.better.Beats(n.value, value[c])) {
				best[c], value[c] = i, n.value
			}
		}
	}
	return names, best
}

// write writes the table, below what it is of.
func (t table) write(out io.Writer) error {
	names, best := t.columns()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "step\t%s\n", strings.Join(names, "\t")) // text takes everything
	for i, row := range t {
		_, _ = fmt.Fprintf(w, "%d\t%s\n", row.step, strings.Join(row.cells(names, best, i), "\t"))
	}
	if floor := t.floor(names); floor != nil {
		_, _ = fmt.Fprintf(w, "floor\t%s\n", strings.Join(floor, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(best, func(i int) bool { return i >= 0 }) && len(t) > 1 {
		text.WriteString("\n* the best of its column: once this split has chosen it, measure it on another\n")
	}
	_, err := fmt.Fprintf(out, "%s\n%s", t.head(), text.String())
	return err
}

// floor are the numbers of real samples, which all rows were measured beside; nil if there
// are none.
func (t table) floor(names []string) (cells []string) {
	for _, row := range t {
		if row.report == nil {
			continue
		}
		for _, n := range row.report.numbers() {
			if n.floor == nil {
				continue
			}
			if cells == nil {
				cells = make([]string, len(names))
			}
			cells[slices.Index(names, n.name)] = fmt.Sprintf("%.5g", *n.floor)
		}
	}
	return cells
}

// head is what the table is of, what all its rows lack, and what there is to say of the sets
// that samples were compared with.
func (t table) head() string {
	var head strings.Builder
	for _, row := range t {
		if r := row.report; r != nil {
			averages := ""
			if r.EMA {
				averages = ", averages of weights"
			}
			fmt.Fprintf(&head, "%s%s, %s of %s/%s\n", r.Run, averages, trained.Count(int64(r.Images), r.noun), r.Data, r.Split)
			r.addLacking(func(format string, args ...any) { fmt.Fprintf(&head, format, args...) })
			if r.Quality != nil {
				for _, note := range r.Quality.Notes {
					fmt.Fprintln(&head, note)
				}
			}
			break
		}
	}
	return head.String()
}

// cells are the row's numbers of these names; those that are best are marked.
func (row tableRow) cells(names []string, best []int, i int) []string {
	if row.report == nil { // of as many cells as all rows, or columns would end here
		return append([]string{"diverged"}, make([]string, max(len(names)-1, 0))...)
	}
	cells := slices.Repeat([]string{"–"}, len(names))
	for _, n := range row.report.numbers() {
		c := slices.Index(names, n.name)
		cells[c] = fmt.Sprintf("%.5g", n.value)
		if best[c] == i {
			cells[c] += "*"
		}
	}
	return cells
}

// writeJSON writes the row as one object in a line.
func (row tableRow) writeJSON(w io.Writer) error {
	if row.report != nil {
		return row.report.writeJSON(w)
	}
	return json.NewEncoder(w).Encode(map[string]any{"step": row.step, "diverged": row.diverged})
}

// unlessJSON writes the table, if it has numbers and they were not written as JSON.
func (t table) unlessJSON(asJSON bool, out io.Writer) error {
	if asJSON || !t.measured() {
		return nil
	}
	return t.write(out)
}

// measured says whether any row has numbers.
func (t table) measured() bool {
	return slices.ContainsFunc(t, func(row tableRow) bool { return row.report != nil })
}

// allDiverged is an error if no checkpoint, of one or more, has numbers.
func (t table) allDiverged() error {
	if t.measured() {
		return nil
	}
	return errors.New("no checkpoint has finite numbers: " + t[0].diverged)
}
