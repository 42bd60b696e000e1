package main

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/control"
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
		err := e.noise(t.Context())(func(x []float32, k int) error {
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

// Noise beside points has their means and deviations, wherever they lie: here around 8 modes
// on a circle, whose points no two columns have to do with each other.
func TestNoiseOfPoints(t *testing.T) {
	const data = "gauss:modes=8,radius=50,sd=1,test=4000"
	e := &evaluation{o: options{data: data, split: "test", batch: 300, seed: 1}, show: progressbar.NewPhases(io.Discard)}
	e.takes = algo.Inputs{Shape: graph.D(1, 1, 2), Range: loader.Unit}
	var m control.Moments
	err := e.noise(t.Context())(func(x []float32, n int) error {
		if len(x) != 2*n {
			t.Fatalf("%d values of %d points", len(x), n)
		}
		m.Add(x, 2)
		return nil
	})
	if err != nil || m.N != 4000 {
		t.Fatalf("%v points, %v", m.N, err)
	}
	for i, sd := range m.SD { // of 50²/2 and 1, within five standard errors
		if want := math.Sqrt(1251); !(math.Abs(sd-want) <= 5*want/math.Sqrt(8000)) || !(math.Abs(m.Mean[i]) <= 5*2*want/math.Sqrt(4000)) {
			t.Errorf("column %d: mean %v, deviation %v, want 0, %v", i, m.Mean[i], sd, want)
		}
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
