package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/eval/compare"
)

// TestBetter: of what has no better way, or the other one, as a supremum's estimate, the
// marks are right.
func TestBetter(t *testing.T) {
	at := func(critic, given, blind float64) tableRow {
		return tableRow{report: &report{Critic: &critic, Truth: new(9.0), Recollection: &recollection{Given: sentences{NLL: given}, Blind: sentences{NLL: blind}}}}
	}
	names, best := table{at(1, 5, 6), at(2, 4, 9)}.columns()
	if !slices.Equal(names, []string{"critic", "nll_given", "nll_blind"}) || !slices.Equal(best, []int{1, 1, -1}) {
		t.Errorf("got %v, best in rows %v", names, best)
	}
}

func TestReadSteps(t *testing.T) {
	for text, want := range map[string][]int64{"-1": {-1}, "0": {0}, "20,5, 100": {5, 20, 100}, "all": nil} {
		got, err := readSteps(text)
		if err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
		if o := (options{steps: got}); o.several() != (len(want) != 1) {
			t.Errorf("%q: several is %t", text, o.several())
		}
	}
}

// TestTableOfCheckpoints: each column has its best row marked, whichever way is better there, and NaN is
// none; a row without numbers says why.
func TestTableOfCheckpoints(t *testing.T) {
	at := func(step int64, rmse, area, kid float64) tableRow {
		return tableRow{step: step, report: &report{
			Run: "runs/a", Step: step, Data: "shards/a", Split: "val", Images: 10, noun: "images", RMSEBatch: &rmse, RMSERunning: new(0.5),
			Energies: []energies{{Of: "data", Mean: 3}}, AUROC: []auroc{{otherSamples, 0.5}, {"noise", area}},
			Quality: &comparison{Notes: []string{"sets are small"}, Rows: []comparisonRow{{Name: "kid", Better: compare.Lower, Samples: &kid, Floor: new(0.5)}}}, Lacking: []string{"ll: none"},
		}}
	}
	var out strings.Builder
	all := table{{step: 5, diverged: "the mean is NaN"}, at(10, 0.25, 0.5, math.NaN()), at(20, 0.125, 0.75, 7), at(30, 0.25, 0.875, 6)}
	all[3].report.Energies = nil
	if err := all.write(&out); err != nil {
		t.Fatal(err)
	}
	want := `runs/a, 10 images of shards/a/val
ll: none
sets are small

step   rmse      rmse_running  energy data  auroc samples  auroc noise  kid
5      diverged                                                         
10     0.25      0.5*          3            0.5            0.5          NaN
20     0.125*    0.5           3            0.5            0.75         7
30     0.25      0.5           –            0.5            0.875*       6*
floor                                                                   0.5

* the best of its column: once this split has chosen it, measure it on another
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := all.allDiverged(); err != nil {
		t.Error(err)
	}
	if err := all[:1].allDiverged(); err == nil || !strings.Contains(err.Error(), "the mean is NaN") {
		t.Errorf("got %v", err)
	}
	out.Reset()
	if err := all[0].writeJSON(&out); err != nil || out.String() != `{"diverged":"the mean is NaN","step":5}`+"\n" {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
