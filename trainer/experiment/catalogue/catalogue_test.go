package catalogue

import (
	"slices"
	"strconv"
	"testing"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// TestValid: every experiment can be meant, and has a claim for every row that is
// not there to be bad.
func TestValid(t *testing.T) {
	names := map[string]bool{}
	for _, e := range All() {
		if names[e.Name] {
			t.Errorf("two experiments are called %s", e.Name)
		}
		names[e.Name] = true
		if err := e.Validate(); err != nil {
			t.Error(err)
		}
		judged := map[string]bool{}
		for _, c := range e.AllChecks() {
			for _, v := range c.Values() {
				judged[v.Row] = true
			}
		}
		for _, r := range e.Rows {
			if !judged[r.Name] && !r.KnownBad && !e.Alone {
				t.Errorf("%s: nothing is claimed of row %s", e.Name, r.Name)
			}
		}
	}
}

// TestPaperHolds: the papers' own numbers satisfy the claims that are about them
// alone, so no claim asks for more than was published.
func TestPaperHolds(t *testing.T) {
	for _, e := range All() {
		table := judge.Table{}
		for _, r := range e.Rows {
			row := judge.Row{Values: map[string]map[uint64]float64{}}
			for name, n := range r.Expect {
				row.Values[name] = map[uint64]float64{1: n.Value}
			}
			table[r.Name] = row
		}
		for _, c := range e.AllChecks() {
			if v := c.Judge(table); v.State == judge.Fails {
				t.Errorf("%s: by the published numbers: %s: %s", e.Name, v.Claim, v.Detail)
			}
		}
	}
}

// The claims by measures of samples are of rows that there are.
func TestClaimsBySamples(t *testing.T) {
	for _, e := range []struct {
		plan.Experiment
		claims func(string) []judge.Check
	}{{lebmPictures(), ablated}, {lebmCIFAR(), clearly}} {
		for _, c := range e.claims("rmse") {
			for _, v := range c.Values() {
				if _, ok := e.Row(v.Row); !ok {
					t.Errorf("%s: a %T speaks of %s", e.Name, c, v)
				}
			}
		}
	}
}

// TestRatesThatComeApart: a rate of Langevin steps is claimed to go wrong only where it is
// above the limit 4/λ, with the λ of starting weights at width 8 (model/eblvm has the test).
func TestRatesThatComeApart(t *testing.T) {
	const limit = 4 / 7.5
	e := vagesMNIST()
	above := 0
	for _, c := range e.Checks {
		w, ok := c.(judge.Worse)
		if !ok {
			continue
		}
		for _, name := range w.Bad {
			r, _ := e.Row(name)
			rate, err := strconv.ParseFloat(r.Flags["refine-rate"], 64)
			if err != nil {
				continue // of another setting
			}
			if above++; rate <= limit {
				t.Errorf("%s is claimed to go wrong with a rate of %v, and the limit is %.2f", name, rate, limit)
			}
		}
	}
	if above == 0 {
		t.Error("no rate is claimed to go wrong")
	}
}

// TestVarianceOfVAE: what is claimed of BiDVL's reconstructions beside the VAE's is claimed
// beside those of a VAE whose decoder has BiDVL's variance, too.
func TestVarianceOfVAE(t *testing.T) {
	for _, e := range []plan.Experiment{pictures(), picturesLong(), picturesWide()} {
		half, ok := e.Row("vae-half")
		if !ok || half.Preset != "vae-cifar10" || half.Flags["decoder-variance"] != "0.5" {
			t.Errorf("%s: no VAE with a variance of 0.5 (%+v)", e.Name, half)
		}
		beside := false
		for _, c := range e.Checks {
			o, ok := c.(judge.Order)
			beside = beside || ok && slices.Equal(o.Rising, judge.Rows("rmse", "bidvl-offset", "vae-half"))
		}
		if !beside {
			t.Errorf("%s: BiDVL's reconstructions are not compared with its", e.Name)
		}
	}
}
