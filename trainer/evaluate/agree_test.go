package main

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/launch/progressbar"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/trained"
)

// compared are the things that a rank compares with the others before it measures.
func compared(t *testing.T, e *evaluation) map[string]string {
	t.Helper()
	enough := errors.New("compared")
	var all map[string]string
	e.same = func(things map[string]string, dataDigest string) error {
		all = maps.Clone(things)
		all["data"] = dataDigest
		return enough
	}
	if _, err := e.measure(t.Context()); !errors.Is(err, enough) {
		t.Fatalf("before anything is measured: %v", err)
	}
	return all
}

// Whatever lies where flags of each host point is compared: of two ranks that have other
// samples, another classifier or other --ood there, one digest differs.
func TestWhatLiesThereIsCompared(t *testing.T) {
	classifier := func(seed uint64) string {
		e := comparingToy(t)
		e.show = progressbar.NewPhases(io.Discard)
		e.o.seed, e.o.batch, e.o.passes, e.o.trainClassifier = seed, 60, 1, filepath.Join(t.TempDir(), "c.safetensors")
		if err := e.trainClassifier(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		return e.o.trainClassifier
	}
	rank := func(change func(*evaluation)) map[string]string {
		e := comparingToy(t)
		e.trained, e.o.run = nil, ""
		e.o.samplesFrom, e.o.measures, e.o.ood = "synth:size=8,train=90,seed=9", "kid", []foreign{{"other", "synth:size=8,test=20"}}
		change(e)
		if err := e.load(); err != nil {
			t.Fatal(err)
		}
		return compared(t, e)
	}
	one, two := classifier(1), classifier(2)
	with := func(file string) func(*evaluation) { return func(e *evaluation) { e.o.classifier = file } }
	first := rank(with(one))
	if !maps.Equal(first, rank(with(one))) {
		t.Error("two ranks that have the same do not agree")
	}
	for name, change := range map[string]func(*evaluation){
		"classifier":   with(two),
		"samples-from": func(e *evaluation) { e.o.samplesFrom, e.o.classifier = "synth:size=8,train=90,seed=8", one },
		"ood other":    func(e *evaluation) { e.o.ood[0].data, e.o.classifier = "synth:size=8,test=21", one },
	} {
		other := rank(change)
		if other[name] == first[name] || first[name] == "" || !strings.Contains(first[name], "digest") {
			t.Errorf("--%s is %q and %q of another", name, first[name], other[name])
		}
	}
	e := comparingToy(t)
	before := compared(t, e)
	if !strings.Contains(before["run"], "step 7") {
		t.Errorf("the run is %q", before["run"])
	}
	e.o.data = "synth:size=8,train=241,test=90"
	if after := compared(t, e); before["data (train)"] == after["data (train)"] || before["data (train)"] == "" {
		t.Errorf("the split that was trained on is %q and %q", before["data (train)"], after["data (train)"])
	}
	e.judge = &trained.Run{State: ckpt.State{Step: 3, ConfigDigest: "sha256:1"}}
	if said := compared(t, e)["judge"]; !strings.Contains(said, "step 3") {
		t.Errorf("the judge is %q", said)
	}
}
