package main

import (
	"io"
	"math"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/eval/svm"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/trained"
)

const figures = "synth:size=8,train=400,test=240"

// probing probes a toy whose latents are its pictures' values, those below the first
// row a thousandth, which to a machine is as good as nothing.
func probing(t *testing.T) *evaluation { return probingOn(t, ref.New()) }

func probingOn(t *testing.T, backend exec.Backend) *evaluation {
	t.Helper()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	model := toy.Config{C: 3, H: 8, W: 8}
	run := &trained.Run{Path: "runs/a", Model: model, Vars: backend.NewVars()}
	run.Settings.Split, run.Settings.Batch = "train", 8
	m, s := exec.NewTensor(graph.T(graph.F32, 192)), exec.NewTensor(graph.T(graph.F32, 192))
	for i := range 192 {
		if i%64 >= 8 {
			s.SetAt(i, math.Log(1000))
		}
	}
	for name, v := range map[string]*exec.Tensor{"gauss.mean": m, "gauss.log_sd": s} {
		if err := run.Vars.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	o := options{run: "runs/a", data: figures, split: "test", batch: 32, seed: 1}
	return &evaluation{o: o, backend: backend, trained: run, takes: model.Takes(), show: progressbar.NewPhases(io.Discard)}
}

// all are a split's pictures in [0, 1], value i of each times scale(i), and labels.
func all(t *testing.T, split string, scale func(i int) float64) svm.Examples {
	t.Helper()
	src, err := dataset.Open(figures, split)
	if err != nil {
		t.Fatal(err)
	}
	e := svm.Examples{Dim: 192}
	for i := range src.Layout().Spans() {
		var b data.Block
		if err := src.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		for k, v := range b.Values {
			e.X = append(e.X, scale(k%192)*float64(float32(v)/255))
		}
		for _, l := range b.Labels {
			e.Labels = append(e.Labels, int(l))
		}
	}
	return e
}

// by is the accuracy of a machine that is trained and asked here.
func by(t *testing.T, scale func(i int) float64) float64 {
	t.Helper()
	m, err := svm.Fit(all(t, "train", scale), 6, svm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Accuracy(all(t, "test", scale))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each accuracy is that of its own features: the toy's initial latents are its
// pictures, and its trained ones are not.
func TestProbe(t *testing.T) {
	raw := by(t, func(int) float64 { return 1 })
	cut := by(t, func(i int) float64 {
		if i%64 >= 8 {
			return 1e-3
		}
		return 1
	})
	e := probing(t)
	var r report
	if err := e.probe(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1.5/240 } // one sample, by rounding
	if !near(*r.ProbeRaw, raw) || !near(*r.ProbeUntrained, raw) || !near(*r.Probe, cut) || near(raw, cut) || r.ProbeSamples != 400 {
		t.Errorf("raw %v, untrained %v, want %v; trained %v, want %v; on %d", *r.ProbeRaw, *r.ProbeUntrained, raw, *r.Probe, cut, r.ProbeSamples)
	}
	// What differs is the scale of features, which standardised ones have lost.
	if a, b := *r.ProbeScaled, *r.ProbeUntrainedScaled; !near(a, b) || near(a, cut) {
		t.Errorf("standardised, trained %v, untrained %v: want the same, not the %v of what is scaled down", a, b, cut)
	}
	e.o.limit = 30 // of the split that is measured, not of the one trained on
	var part report
	if err := e.probe(t.Context(), &part); err != nil || part.ProbeSamples != 400 {
		t.Errorf("%+v, %v", part, err)
	}
	if x := *part.ProbeRaw * 30; !(math.Abs(x-math.Round(x)) <= 1e-9) {
		t.Errorf("an accuracy of %v is not one of 30 samples", *part.ProbeRaw)
	}
}

// A part of the training split is a random one, the same for the same seed.
func TestProbeLimit(t *testing.T) {
	e := probing(t)
	labels := func(seed uint64) string {
		e.o.seed = seed
		out, err := e.examples(t.Context(), pass{phase: "x", data: figures, split: "train", limit: 20, random: true}, nil)
		if err != nil || out.N() != 20 {
			t.Fatalf("%d examples, %v", out.N(), err)
		}
		var b strings.Builder
		for _, l := range out.Labels {
			b.WriteByte(byte('0' + l))
		}
		return b.String()
	}
	var first strings.Builder
	for _, l := range all(t, "train", func(int) float64 { return 1 }).Labels[:20] {
		first.WriteByte(byte('0' + l))
	}
	if a, b, again := labels(1), labels(2), labels(1); a != again || a == b || a == first.String() {
		t.Errorf("seed 1 %s and %s, seed 2 %s, the first ones %s", a, again, b, first.String())
	}
	e.o.probeLimit = 1
	if err := e.probe(t.Context(), &report{}); err == nil || !strings.HasPrefix(err.Error(), "all 1 pictures of "+figures+"/train that the probe is trained on are of one class: want more, with --probe-limit") {
		t.Errorf("one class: %v", err)
	}
}

// Classes that do not occur in training are never told rightly.
func TestRenumber(t *testing.T) {
	seen, asked := []int{4, 1, 4, 7}, []int{1, 2, 7, 4}
	classes := occurring(seen)
	renumber(seen, classes)
	renumber(asked, classes)
	if len(classes) != 3 || seen[0] != seen[2] || seen[0] == seen[1] || asked[1] != -1 || asked[0] != seen[1] || asked[2] != seen[3] || asked[3] != seen[0] {
		t.Errorf("seen %v, asked %v by %v", seen, asked, classes)
	}
}
