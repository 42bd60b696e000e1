package main

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/data/dataset"
	"ebtrain/data/importer"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/ngram"
	"ebtrain/trainer/method/lebm"
	"ebtrain/trainer/method/lm"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/trained"
)

// prose makes a data set of 250 sentences of words that follow each other, the last 50
// of them for testing.
func prose(t *testing.T) string {
	t.Helper()
	words := strings.Fields("a man and woman walk slowly through the old park with their small brown dog")
	var b strings.Builder
	for i := range 250 {
		for k := range 1 + i*i%7 {
			fmt.Fprint(&b, words[(i+k*(1+i%2))%len(words)], " ")
		}
		b.WriteByte('\n')
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	set, err := importer.Text(t.Context(), importer.TextFiles{Src: []string{file}, Test: "50", Buckets: 2}, importer.Words{MinCount: 1, MaxLength: 20})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "set")
	if _, err := importer.Run(t.Context(), set, importer.Options{Out: out, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	return out
}

// untrained is a run of a preset before its first step, with some settings.
func untrained(t *testing.T, backend exec.Backend, m algo.Method, preset, data string, change func(algo.Config)) *trained.Run {
	t.Helper()
	p, err := m.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	src, err := dataset.Open(data, "train")
	if err != nil {
		t.Fatal(err)
	}
	c := p.Config.Clone()
	change(c)
	if err := c.Fit(src.Schema()); err != nil {
		t.Fatal(err)
	}
	r := &trained.Run{Path: "runs/" + preset, Model: c.Model(), Vars: backend.NewVars()}
	r.Settings.Algo, r.Settings.Split, r.Settings.DataDigest = m.Name, "train", src.Digest()
	_, specs, err := r.Model.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := nn.Initialise(r.Vars, specs, 1); err != nil {
		t.Fatal(err)
	}
	return r
}

// writing evaluates an untrained prior of sentences, by 5-grams and by an untrained
// language model.
func writing(t *testing.T, data string, prior lebm.Prior) *evaluation {
	t.Helper()
	backend := ref.New()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	e := &evaluation{backend: backend, show: progressbar.NewPhases(io.Discard), log: slog.New(slog.DiscardHandler)}
	e.trained = untrained(t, backend, lebm.Method(), "lebm-snli", data, func(c algo.Config) {
		l := c.(*lebm.Config)
		l.Prior, l.Text.Embed, l.Text.Hidden, l.Net.Latent, l.Net.NEF, l.PriorChain.Steps = prior, 3, 4, 2, 4, 2
	})
	e.judge = untrained(t, backend, lm.Method(), "lm-snli", data, func(c algo.Config) {
		l := c.(*lm.Config)
		l.Embed, l.Hidden = 3, 4
	})
	e.takes = e.trained.Model.Takes()
	e.o = options{run: "runs/a", data: data, split: "test", batch: 16, seed: 1, samples: 60, stats: "batch", measures: "forward,reverse,rmse"}
	return e
}

func (e *evaluation) mustMeasure(t *testing.T) *report {
	t.Helper()
	e.fluency = nil
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Samples of a new model are as bad as words drawn by chance, and worse than real
// sentences, by every judge but an untrained one; --judge's perplexity of the floor is
// that of the measure nll.
func TestFluency(t *testing.T) {
	e := writing(t, prose(t), lebm.EBM)
	r := e.mustMeasure(t)
	c := r.Quality
	if c.Reference != 200 || len(c.Sizes) != 6 || c.Sizes[setFloor] != 50 || c.Sizes[setNormal] != 60 || len(c.Rows) != 3 {
		t.Fatalf("%+v", c)
	}
	for _, name := range []string{rowForward, rowReverse} {
		row := c.row(name)
		if floor := *row.Floor; !(floor < 7 && row.Controls[setShuffled] > 1.5*floor && row.Controls[setUnigram] > 1.5*floor && *row.Samples > 2*floor && row.Controls[setNormal] > 2*floor) {
			t.Errorf("%s: samples %v, floor %v, %v", name, *row.Samples, floor, row.Controls)
		}
	}
	forward, reverse := c.row(rowForward), c.row(rowReverse)
	if !(forward.Controls[setTen] < 1.2**forward.Floor && reverse.Controls[setTen] > 1.5**reverse.Floor) {
		t.Errorf("ten sentences: forward %+v, reverse %+v", forward, reverse)
	}
	if !slices.Contains(forward.Blind, setTen) {
		t.Errorf("forward is blind to %v", forward.Blind)
	}
	if said := strings.Join(r.Lacking, ""); !strings.Contains(said, "--measures rmse of runs/a, a run of --algo lebm: its models give no reconstructions") {
		t.Error(said)
	}

	judge := *e
	judge.trained, judge.o.measures = e.judge, measureNLL
	if want, got := judge.mustMeasure(t).Sentences.Perplexity, *c.row(rowJudged).Floor; !(math.Abs(got-want) <= 1e-5*want) {
		t.Errorf("--judge's perplexity of test sentences is %v, by nll %v", got, want)
	}

	// Of the first ten sentences, wherever their lengths put them, it is theirs.
	test, err := e.sentencesOf(t.Context(), e.o.data, e.o.split, 10)
	if err != nil || len(test) != 10 {
		t.Fatal(len(test), err)
	}
	first, err := e.judged(t.Context(), "first", test)
	judge.o.limit = 10
	if got := judge.mustMeasure(t).Sentences; err != nil || got.Words != first.Words || !(math.Abs(got.Perplexity/first.Perplexity()-1) <= 1e-5) {
		t.Errorf("of ten sentences %+v, want %v words of perplexity %v, %v", got, first.Words, first.Perplexity(), err)
	}

	var table strings.Builder
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"beside 200 sentences of ", "samples ", "N(0, I)", "ten sentences", "forward perplexity, 5-gram", "forward perplexity, --judge", "reverse perplexity, 5-gram", "by a model of 60 training sentences"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// A fixed prior has no column of samples without it; without a judge there is no row of
// it; the split that was trained on has no floor; a picture measure is named.
func TestFluencyLacks(t *testing.T) {
	e := writing(t, prose(t), lebm.Gaussian)
	e.judge, e.o.split, e.o.measures = nil, "train", "forward,kid"
	r := e.mustMeasure(t)
	c := r.Quality
	if len(c.Rows) != 1 || c.Rows[0].Floor != nil || c.Sizes[setNormal] != 0 || !strings.Contains(strings.Join(c.Notes, "\n"), "there is no floor: --split train") {
		t.Errorf("%+v", c)
	}
	if said := strings.Join(r.Lacking, ""); !strings.Contains(said, "--measures kid of runs/a, a run of --algo lebm: its samples are neither pictures nor points") {
		t.Error(said)
	}
	pictures := probing(t)
	pictures.o.measures = measureReverse
	if _, err := pictures.measure(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "its samples are no sentences") {
		t.Errorf("of pictures: %v", err)
	}
}

// Sentences of another program are judged without a model: the training sentences
// themselves, as --samples-from has them.
func TestFluencyOfOthers(t *testing.T) {
	data := prose(t)
	e := writing(t, data, lebm.EBM)
	e.trained, e.judge, e.o.run, e.o.measures, e.o.samplesFrom, e.o.samples = nil, nil, "", "forward,reverse", data, 1000
	if err := e.load(); err != nil {
		t.Fatal(err)
	}
	c := e.mustMeasure(t).Quality
	train, err := e.sentencesOf(t.Context(), data, "train", 0)
	if err != nil || len(train) != 200 {
		t.Fatalf("%d, %v", len(train), err)
	}
	test, err := e.sentencesOf(t.Context(), data, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ngram.Train(5, len(e.takes.Words), train)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][][]int32{rowForward: train, rowReverse: test} {
		s, err := m.Score(text)
		if err != nil || *c.row(name).Samples != s.Perplexity() {
			t.Errorf("%s: %v, want %v (%v)", name, *c.row(name).Samples, s.Perplexity(), err)
		}
	}
	if r := c.row(rowReverse); !(math.Abs(*r.Floor-*r.Samples) <= 1e-9**r.Floor) {
		t.Errorf("the floor by all training sentences is %v, and that by all of them %v", *r.Floor, *r.Samples)
	}
	e.o.limit = 7
	if n := e.mustMeasure(t).Quality.Sizes[setFloor]; n != 7 {
		t.Errorf("with --limit 7 the floor has %d sentences", n)
	}
	e.o.samplesFrom = "synth:size=8,train=9"
	e.fluency = nil
	if _, err := e.measure(t.Context()); err == nil || !strings.HasSuffix(err.Error(), " holds sentences: they are judged beside their like") {
		t.Errorf("pictures: %v", err)
	}
}

// Unless measures are named, --samples-from is judged by those of what it holds: pictures or
// sentences, of which a Fréchet distance wants no number.
func TestMeasuresByKind(t *testing.T) {
	for _, tt := range []struct{ data, flags, want, fails string }{
		{prose(t), "--samples 1000", "forward,reverse", ""},
		{prose(t), "--measures kid", "kid", ""},
		{"synth:size=8,train=9", "", "frechet,kid,swd,prdc", ""},
		{"gauss:dim=3,train=900", "--samples 100", "frechet,kid,swd,prdc", ""},
		{"gauss:dim=3,train=900", "--samples 99", "", "--samples 99: a Fréchet distance wants at least 100"},
		{"gauss:dim=30,train=900", "--measures kid,frechet --samples 200", "", "--samples 200: a Fréchet distance wants at least 300"},
		{"synth:size=8,train=9", "--measures kid,frechet --samples 1000", "", "--samples 1000: a Fréchet distance wants at least 2048"},
		{"synth:size=8,train=9", "--measures frechet --reference 1000", "", "--reference 1000: a Fréchet distance wants at least 2048"},
		{"synth:size=8,train=9", "--samples 1000", "", "--samples 1000: a Fréchet distance wants at least 2048"},
	} {
		o, err := parse(append([]string{"--samples-from", tt.data, "--data", tt.data}, strings.Fields(tt.flags)...), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		e := &evaluation{o: o}
		switch err := e.load(); {
		case tt.fails == "" && (err != nil || e.o.measures != tt.want):
			t.Errorf("%s %s: %s, %v; want %s", tt.data, tt.flags, e.o.measures, err, tt.want)
		case tt.fails != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.fails)):
			t.Errorf("%s %s: %v, want %q", tt.data, tt.flags, err, tt.fails)
		}
	}
}

// A judge whose numbers are not finite judges nothing, and is named: it is not the run that has
// diverged.
func TestJudgeDiverged(t *testing.T) {
	e := writing(t, prose(t), lebm.Gaussian)
	e.o.measures = measureForward
	spoil(t, e.judge, "lm.out.bias")
	if _, err := e.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "has diverged: −log p of these sentences is NaN") || diverged(t, e, err) {
		t.Errorf("got %v", err)
	}
}

// spoil makes an element of a variable NaN.
func spoil(t *testing.T, run *trained.Run, name string) {
	t.Helper()
	x, err := run.Vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	x.SetAt(5, math.NaN())
	if err := run.Vars.Set(name, x); err != nil {
		t.Fatal(err)
	}
}

// A model whose words have no probabilities writes no sentences: it has diverged.
func TestWriterDiverged(t *testing.T) {
	e := writing(t, prose(t), lebm.EBM)
	spoil(t, e.trained, "generator.out.bias")
	if _, err := e.measure(t.Context()); err == nil || !diverged(t, e, err) {
		t.Errorf("%v is no divergence", err)
	}
}

// Ranks share the draws and what --judge reads, and find the same numbers.
func TestFluencyOfRanks(t *testing.T) {
	data := prose(t)
	want := writing(t, data, lebm.EBM).mustMeasure(t).Quality
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	got, errs := make([]*report, 2), make([]error, 2)
	var wait sync.WaitGroup
	for r, comm := range comms {
		e := writing(t, data, lebm.EBM)
		e.comm = comm
		wait.Go(func() { got[r], errs[r] = e.measure(t.Context()) })
	}
	wait.Wait()
	for r, comm := range comms {
		if err := comm.Close(); err != nil || errs[r] != nil {
			t.Fatal(err, errs[r])
		}
		for i, row := range got[r].Quality.Rows {
			if *row.Samples != *want.Rows[i].Samples || *row.Floor != *want.Rows[i].Floor || row.Controls[setNormal] != want.Rows[i].Controls[setNormal] {
				t.Errorf("rank %d, %s: %+v, alone %+v", r, row.Name, row, want.Rows[i])
			}
		}
	}
}
