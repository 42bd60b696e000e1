package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/nn"
)

const shades = 6 // the classes of shaded, each darker than the next

// shaded are shards of n grey pictures of 8×8, whose shades are their classes: class by
// class, as importers make them that keep the order of files, or in turn.
func shaded(t *testing.T, n int, seed uint64, sorted bool) string {
	t.Helper()
	s := data.Schema{C: 3, H: 8, W: 8, DType: safetensors.U8}
	for k := range shades {
		s.Classes = append(s.Classes, fmt.Sprint("shade ", k))
	}
	dir := filepath.Join(t.TempDir(), "shaded")
	w, err := shard.Create(dir, shard.Options{Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		k := i % shades
		if sorted {
			k = i * shades / n
		}
		u, x := make([]float64, s.SampleBytes()), make([]byte, s.SampleBytes())
		philox.Name{Seed: seed, Purpose: philox.Testing, Sample: uint32(i)}.Uniform(u)
		for j, v := range u {
			x[j] = byte(40*k + int(30*v))
		}
		if err := w.Add(t.Context(), "train", x, int64(k)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Sets that are sorted by class are judged as others are: as many of the reference as
// there are samples are no single class, and parts of a score neither.
func TestSortedByClass(t *testing.T) {
	precision := func(sorted bool) float64 {
		e := comparingToy(t)
		e.trained, e.o.run = nil, ""
		e.o.data, e.o.samplesFrom = shaded(t, 600, 1, sorted), shaded(t, 90, 2, sorted)
		e.o.split, e.o.measures, e.o.cache = "train", "prdc", noCache
		if err := e.load(); err != nil {
			t.Fatal(err)
		}
		r, err := e.measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *r.Quality.row("precision").Samples
	}
	if mixed, sorted := precision(false), precision(true); !(math.Abs(mixed-sorted) <= 0.2) || mixed < 0.5 {
		t.Errorf("precision is %v, and %v of such pictures sorted by class", mixed, sorted)
	}

	e := comparingToy(t)
	p, err := e.real(t.Context(), "all", shaded(t, 60, 1, true), "train", 0)
	if err != nil || p.n != 60 || slices.IsSorted(p.labels) {
		t.Errorf("%d pictures of the classes %v, %v: want all 60, in no order", p.n, p.labels, err)
	}
}

// Chains that begin at the data begin at some of each class, and at measured samples only.
func TestChainsBeginAtEachClass(t *testing.T) {
	e := comparingToy(t)
	e.o.data, e.o.split, e.o.aisChains = shaded(t, 240, 1, true), "train", 30
	shadesOf := func(want int) map[int]int {
		x, n, err := e.beginnings(t.Context())
		size := e.takes.Shape.Len()
		if err != nil || n != want || len(x) != want*size {
			t.Fatalf("%d values of %d samples, %v: want %d", len(x), n, err, want)
		}
		of := map[int]int{}
		for picture := range slices.Chunk(x, size) {
			of[int(255*slices.Min(picture)+0.5)/40]++
		}
		return of
	}
	if of := shadesOf(30); len(of) < shades-1 {
		t.Errorf("chains begin at the shades %v", of)
	}
	one, _, err := e.beginnings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.o.seed++
	if two, _, err := e.beginnings(t.Context()); err != nil || slices.Equal(one, two) {
		t.Errorf("two seeds begin at the same pictures, %v", err)
	}
	e.o.limit = 50 // shade 0, and ten of shade 1
	if of := shadesOf(30); len(of) != 2 {
		t.Errorf("of the first 50, chains begin at the shades %v", of)
	}
	e.o.limit = 20
	if of := shadesOf(20); len(of) != 1 {
		t.Errorf("of the first 20, chains begin at the shades %v", of)
	}
}

// paired is a model whose loss compares samples: the mean square of how far each is from
// the next one.
type paired struct{ toy.Config }

func (paired) Group() int { return 2 }

func (m paired) Loss(n int) (*graph.Graph, error) {
	c := nn.NewContext(nn.Eval, 1)
	x := c.Reshape(c.Input(algo.InputImages, graph.T(graph.F32, n, m.C, m.H, m.W)), graph.D(n, m.C*m.H*m.W))
	next := c.Concat(0, c.Slice(x, 0, 1, n, 1), c.Slice(x, 0, 0, 1, 1))
	c.Output(algo.OutputLoss, c.Mean(c.Square(c.Sub(x, next)), 1))
	return c.Commit()
}

// A loss that compares samples is the same of data that are sorted by class: which samples
// meet is a matter of chance, by the seed, as in training.
func TestPairsOfSortedData(t *testing.T) {
	loss := func(sorted bool, seed uint64) float64 {
		e := comparingToy(t)
		e.trained.Model = paired{e.trained.Model.(toy.Config)}
		e.o.data, e.o.split, e.o.seed = shaded(t, 600, 1, sorted), "train", seed
		var r report
		if err := e.loss(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
		return *r.Loss
	}
	mixed, sorted := loss(false, 1), loss(true, 1)
	if !(math.Abs(sorted/mixed-1) <= 0.2) {
		t.Errorf("pairs of mixed data are %v apart, and of sorted ones %v", mixed, sorted)
	}
	alone := comparingToy(t)
	alone.trained.Model = paired{alone.trained.Model.(toy.Config)}
	alone.o.data, alone.o.split, alone.o.limit, alone.o.measures = shaded(t, 600, 1, true), "train", 1, measureLoss+","+measureEnergy
	all, lacking, err := alone.chosen()
	if want := "it is of 2 samples together at least, and 1 picture of " + alone.o.data + "/train is measured: give more"; err != nil || len(all) != 1 || len(lacking) != 1 || !strings.HasSuffix(lacking[0], want) {
		t.Errorf("of one sample: %d measures, %q, %v, want that the loss lacks: %s", len(all), lacking, err, want)
	}
	if again, other := loss(true, 1), loss(true, 2); again != sorted || other == sorted {
		t.Errorf("%v is %v again, and %v of another seed", sorted, again, other)
	}
}
