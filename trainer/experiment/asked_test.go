package main

import (
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/launch/exitcode"
	"ebtrain/trainer/experiment/catalogue"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// questions are all that evaluate is asked about a row, by the flags alone.
func questions(e plan.Experiment, row plan.Row) (all [][]string) {
	w := &work{e: e, threads: 1}
	for _, d := range e.Beside {
		w.beside = append(w.beside, oodFlag+d.Name+"=nowhere")
	}
	b := bench{w: w, t: task{Cell: cell.Cell{Root: "nowhere"}, row: row}}
	ask := func(words string, flags map[string]string) {
		if words != "" {
			all = append(all, b.asking(words, 1, flags))
		}
	}
	ask(b.asks(), e.Evaluate)
	if slices.Contains(e.Measured(row), fisherLast) {
		ask("fisher", e.Evaluate)
	}
	if e.Select != nil {
		m, _ := measure.Find(e.Select.Measure) // the plan is valid
		ask(m.Asks, e.Select.Evaluate)
	}
	for _, c := range e.Curves {
		if m, ok := measure.Find(c.Measure); ok {
			ask(m.Asks, e.Evaluate)
		}
	}
	return all
}

// evaluate refuses flags that have no effect, and none of what the experiments ask: it
// gets as far as the run, which is not there.
func TestEvaluateTakesWhatIsAsked(t *testing.T) {
	newSite(t)
	asked := map[string][]string{}
	for _, e := range append(catalogue.All(), catalogueOfTests()...) {
		for _, row := range e.Rows {
			for _, q := range questions(e, row) {
				asked[strings.Join(q, " ")] = q
			}
		}
	}
	if len(asked) < 10 {
		t.Fatalf("evaluate is asked %d things", len(asked))
	}
	for _, text := range slices.Sorted(maps.Keys(asked)) {
		out, err := exec.Command(filepath.Join(bin, "evaluate"), asked[text]...).CombinedOutput()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitcode.Failed {
			t.Errorf("evaluate %s: %v, %s", text, err, out)
		}
	}
	t.Logf("%d questions", len(asked))
}
