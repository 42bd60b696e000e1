package main

import (
	"errors"
	"io"
	"slices"
	"testing"

	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Noise is as many samples as data are measured, whatever fits into a batch, and each
// is the same in batches of any size. Its range is seen to by TestRangeOfTheModel.
func TestNoise(t *testing.T) {
	e := probing(t)
	read := func(batch int, limit int64) (all []float32, n int) {
		e.o.batch, e.o.limit = batch, limit
		err := e.noise(func(x []float32, k int) error {
			if len(x) != k*192 || k > batch {
				t.Fatalf("%d values of %d samples", len(x), k)
			}
			all, n = append(all, x...), n+k
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all, n
	}
	whole, n := read(1000, 0)
	if want, err := e.size(figures, "test"); err != nil || n != int(want) {
		t.Errorf("%d samples beside %d data, %v", n, want, err)
	}
	some, n := read(7, 45)
	if n != 45 || !slices.Equal(some, whole[:len(some)]) {
		t.Errorf("%d samples of 45, or others than in one batch", n)
	}
}

// asked is a toy that notes by whose statistics it is asked to draw samples.
type asked struct {
	toy.Config
	by *[]nn.Mode
}

func (a asked) Sample(mode nn.Mode, n int) (chain.Plan, error) {
	*a.by = append(*a.by, mode)
	return a.Config.Sample(mode, n)
}

// They are drawn by --seed.
func TestSeedOfEnergies(t *testing.T) {
	e := probing(t)
	e.o.stats, e.o.limit = "batch", 10
	seen := map[float64]bool{}
	for range 2 {
		var r report
		if err := e.energies(t.Context(), &r); err != nil || r.Energies[1].Of != otherSamples {
			t.Fatal(r.Energies, err)
		}
		seen[r.Energies[1].Mean] = true
		e.o.seed++
	}
	if len(seen) != 2 {
		t.Errorf("two seeds have the same samples, of the energies %v", seen)
	}
}

// noisy is a toy whose Sample gives means, and which can draw.
type noisy struct{ toy.Config }

func (n noisy) Sample(nn.Mode, int) (chain.Plan, error) {
	return chain.Plan{}, errors.New("means are no draws")
}
func (n noisy) SampleDrawn(mode nn.Mode, k int) (chain.Plan, error) { return n.Config.Sample(mode, k) }

// They are draws where a model tells these from samples that are means.
func TestEnergiesOfDraws(t *testing.T) {
	e := probing(t)
	e.trained.Model, e.o.stats, e.o.limit = noisy{e.trained.Model.(toy.Config)}, "batch", 10
	var r report
	if err := e.energies(t.Context(), &r); err != nil || r.AUROC[0].Against != otherSamples {
		t.Error(r.AUROC, err)
	}
}

// The samples whose energies are measured are drawn by the statistics of --stats, and by
// the batch's where none are named.
func TestStatsOfEnergies(t *testing.T) {
	o, err := parse([]string{"--run", "a"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for stats, want := range map[string]nn.Mode{o.stats: nn.BatchStats, "running": nn.Eval} {
		e, by := probing(t), []nn.Mode{}
		e.trained.Model, e.o.stats, e.o.limit = asked{e.trained.Model.(toy.Config), &by}, stats, 10
		if err := e.energies(t.Context(), &report{}); err != nil || !slices.Equal(by, []nn.Mode{want}) {
			t.Errorf("--stats %s: drawn by %v, %v; want %v", stats, by, err, want)
		}
	}
}
