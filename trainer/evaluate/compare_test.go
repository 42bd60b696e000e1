package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec/cpu"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/run/ckpt"
)

// Samples of the toy are noise, each value N(0, 1).
func comparingToy(t *testing.T) *evaluation {
	t.Helper()
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	e := probingOn(t, backend)
	e.trained.State = ckpt.State{Step: 7}
	e.log = slog.New(slog.DiscardHandler)
	e.o.data, e.o.samples, e.o.reference, e.o.stats = "synth:size=8,train=240,test=90", 90, 0, "batch"
	e.o.cache = t.TempDir()
	return e
}

// A folder that takes no files is told of once, not for every network and set, and
// what is no folder is not called damaged.
func TestNothingIsKept(t *testing.T) {
	e := comparingToy(t)
	var said strings.Builder
	e.log, e.o.measures, e.o.cache = slog.New(slog.NewTextHandler(&said, nil)), "kid", filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(e.o.cache, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := e.measure(t.Context()); err != nil || r.Quality == nil {
		t.Fatal(r, err)
	}
	if n := strings.Count(said.String(), "\n"); n != 1 || !strings.Contains(said.String(), "they are not kept for the next time: mkdir ") {
		t.Errorf("it says %d things:\n%s", n, &said)
	}
}

// Without a home there is no folder for features: that is said, once, and ends nothing.
func TestNoHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	e := comparingToy(t)
	var said strings.Builder
	e.log, e.o.measures, e.o.cache = slog.New(slog.NewTextHandler(&said, nil)), "kid", ""
	if r, err := e.measure(t.Context()); err != nil || r.Quality == nil {
		t.Fatal(r, err)
	}
	if n := strings.Count(said.String(), "\n"); n != 1 || !strings.Contains(said.String(), "they are not kept for the next time: neither $XDG_CACHE_HOME nor $HOME are defined: name a folder, or none") {
		t.Errorf("it says %d things:\n%s", n, &said)
	}
}

func TestCompare(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: seven measures of seven sets; TestRanksAgree of package compare has fewer")
	}
	e := comparingToy(t)
	e.o.measures = "kid,prdc,swd,neighbours,frechet,is,rmse"
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Quality
	if c == nil || c.Reference != 240 || c.Of != e.o.data+"/train" || c.Sizes[setSamples] != 90 || c.Sizes[setFloor] != 90 || len(c.Sizes) != 7 {
		t.Fatalf("%+v", c)
	}
	said := strings.Join(r.Lacking, "\n")
	for _, want := range []string{"rmse of", "/train holds 240 pictures, and a Fréchet distance wants at least 2048", "is of a classifier, and neither --classifier nor --inception is given"} {
		if !strings.Contains(said, want) {
			t.Errorf("it says %q, want %q", said, want)
		}
	}
	var names []string
	for _, row := range c.Rows {
		names = append(names, row.Name)
		if row.Name != "neighbour" && row.Name != "recall" && !row.Better.Beats(*row.Floor, *row.Samples) {
			t.Errorf("%s: noise %v, real pictures %v", row.Name, *row.Samples, *row.Floor)
		}
	}
	if got := strings.Join(names, " "); got != "kid precision recall density coverage swd neighbour" {
		t.Errorf("rows %s", got)
	}
	if n := c.row("neighbour"); n.Controls[setCopies] > 1e-3 || slices.Contains(n.Blind, setCopies) {
		t.Errorf("copies are %v away", n.Controls[setCopies])
	}
	if k := c.row("kid"); !slices.Contains(k.Blind, setCopies) || slices.Contains(k.Blind, setNoise) && k.Controls[setNoise] > *k.Samples {
		t.Errorf("kid is blind to %v: %+v", k.Blind, k)
	}

	var table, object strings.Builder
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"beside 240 pictures of synth", "KID × 1000", "not told from real pictures, since no worse than the floor:\n", "one class", "wants at least 2048"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	for line := range strings.Lines(table.String()) {
		if at := strings.TrimSuffix(line, "\n"); strings.HasSuffix(at, " ") || len([]rune(at)) > 120 && !strings.HasPrefix(at, "--measures") {
			t.Errorf("a line of %d columns: %q", len([]rune(at)), at)
		}
	}
	if err := r.writeJSON(&object); err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Quality struct {
			Rows []struct {
				Name           string
				Samples, Floor float64
				Controls       map[string]float64
			}
		}
	}
	if err := json.Unmarshal([]byte(object.String()), &fields); err != nil || len(fields.Quality.Rows) != 7 || len(fields.Quality.Rows[0].Controls) != 5 {
		t.Errorf("%v: %s", err, object.String())
	}

	// What was kept, for networks, gives the same numbers, and damage to it changes none.
	kept, err := filepath.Glob(filepath.Join(e.o.cache, "*"))
	if err != nil || len(kept) != 10 { // five networks, the reference and the floor
		t.Fatalf("%d files, %v", len(kept), err)
	}
	if err := os.WriteFile(kept[3], []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	var warned strings.Builder
	e.log, e.compare, e.o.measures = slog.New(slog.NewTextHandler(&warned, nil)), nil, "kid,prdc"
	again, err := e.measure(t.Context())
	if err != nil || !strings.Contains(warned.String(), "computed again") {
		t.Fatalf("%v, %q", err, warned.String())
	}
	if n := len(again.Quality.Rows); n != 5 {
		t.Fatalf("%d rows, want those of kid and prdc", n)
	}
	for i, row := range again.Quality.Rows {
		if row.Name != c.Rows[i].Name || *row.Samples != *c.Rows[i].Samples || *row.Floor != *c.Rows[i].Floor {
			t.Errorf("%s: %v and %v, then %v and %v", row.Name, *c.Rows[i].Samples, *c.Rows[i].Floor, *row.Samples, *row.Floor)
		}
	}
}

// A model that only draws samples, as a GAN's, has nothing at little cost, and is said
// to have what it has.
func TestOnlySamples(t *testing.T) {
	e := comparingToy(t)
	e.o.measures = allMeasures
	sampler, ok := e.trained.Model.(algo.Sampler)
	if !ok {
		t.Fatal("the toy draws no samples")
	}
	e.trained.Model = struct {
		algo.Model
		algo.Sampler
	}{e.trained.Model, sampler}
	_, _, err := e.chosen()
	if err == nil || !strings.HasPrefix(err.Error(), "nothing can be measured at little cost of ") || !strings.HasSuffix(err.Error(), "--measures kid,swd,prdc,c2st,neighbours") {
		t.Errorf("got %v", err)
	}
}

// --limit is of what is measured one by one: it does not make a reference small.
func TestLimitIsNotOfReferences(t *testing.T) {
	e := comparingToy(t)
	e.o.data, e.o.limit = "synth:size=8,train=2100,test=90", 10
	if lacking := e.lacksComparison(compare.Frechet); lacking != "" {
		t.Errorf("it says %q", lacking)
	}
}

// Two draws of the same seed are equal, however many are drawn, and those of
// different batches differ.
func TestDrawn(t *testing.T) {
	e := comparingToy(t)
	e.o.batch, e.o.samples = 16, 40
	all, err := e.drawn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.o.samples = 20
	few, err := e.drawn(t.Context())
	if size := e.takes.Shape.Len(); err != nil || !slices.Equal(few.X, all.X[:20*size]) || slices.Equal(all.X[:size], all.X[16*size:17*size]) {
		t.Errorf("draws are not named by seed and number, %v", err)
	}
}

// Without a model another data set is judged: of the same pictures it is as good as
// the floor.
func TestSamplesFrom(t *testing.T) {
	e := comparingToy(t)
	e.trained, e.o.run = nil, ""
	e.o.samplesFrom, e.o.measures, e.o.cache = "synth:size=8,train=90,test=9,seed=9", "kid,c2st", noCache
	if err := e.load(); err != nil {
		t.Fatal(err)
	}
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Quality.Sizes[setSamples]; n != 90 {
		t.Errorf("%d samples are judged, want the 90 of the split train", n)
	}
	kid := r.Quality.row("kid")
	if !(math.Abs(*kid.Samples) < kid.Controls[setNoise]/10) || r.SamplesFrom != e.o.samplesFrom {
		t.Errorf("%+v", kid)
	}
	if auc := r.Quality.row("c2st-auc"); *auc.Samples > 0.8 || auc.Controls[setNoise] < 0.9 {
		t.Errorf("%+v", auc)
	}
	var b strings.Builder
	if err := r.writeTable(&b); err != nil || !strings.HasPrefix(b.String(), e.o.samplesFrom+", 90 pictures of synth") {
		t.Errorf("%v: %s", err, b.String())
	}
	e.o.samplesFrom, e.compare = "synth:size=16,train=90", nil
	if _, err := e.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "synth:size=16,train=90 holds 3×16×16 U8, and --data synth") {
		t.Errorf("another size: %v", err)
	}
}

// A classifier is trained, read back, and refused where the data are others.
func TestTrainClassifier(t *testing.T) {
	e := comparingToy(t)
	e.o.batch, e.o.passes = 30, 12
	e.o.trainClassifier = filepath.Join(t.TempDir(), "c.safetensors")
	e.show = progressbar.NewPhases(io.Discard)
	var out strings.Builder
	if err := e.trainClassifier(t.Context(), &out); err != nil || !strings.Contains(out.String(), "a classifier of 6 classes, trained on 240 pictures") ||
		!strings.Contains(out.String(), "; accuracy on 90 of "+e.o.data+"/test ") {
		t.Fatalf("%q, %v", out.String(), err)
	}
	e.o.classifier = e.o.trainClassifier
	e.o.measures = "kid," + compare.IS
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if is := r.Quality.row("is"); is.Floor == nil || *is.Floor <= 1 || *is.Floor > 6 || r.Quality.row("kid-classifier").Samples == nil {
		t.Errorf("%+v", is)
	}
	e.o.data = "synth:size=8,train=240,test=90,seed=8"
	if _, err := e.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "was trained on other data") {
		t.Errorf("other data: %v", err)
	}
	e.o.data = "gauss:dim=2"
	if err := e.trainClassifier(t.Context(), &out); err == nil {
		t.Error("a classifier of points")
	}
}

func TestDigits(t *testing.T) {
	for want, of := range map[string]struct {
		v float64
		n int
	}{"190": {190.2, 2}, "1.9": {1.93, 2}, "0.023": {0.0231, 2}, "-14580": {-14580.4, 4}, "1e+08": {1e8, 4}, "145.8": {145.84, 4}, "0": {0, 4}, "100": {99.7, 2}, "99": {99.4, 2}, "-10000": {-9999.7, 4}, "+Inf": {math.Inf(1), 4}, "1e-05": {1e-5, 2}} {
		if got := digits(of.v, of.n); got != want {
			t.Errorf("%v to %d digits is %s, want %s", of.v, of.n, got, want)
		}
	}
}
