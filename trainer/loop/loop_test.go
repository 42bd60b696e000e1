package loop_test

import (
	"context"
	"log/slog"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/data/synth"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/bidvl"
	"ebtrain/trainer/loop"
)

// watch keeps what it is shown.
type watch struct {
	records []loop.Record
	saved   []int64
	samples int
}

func (w *watch) Started(int64) error               { return nil }
func (w *watch) Stepped(r loop.Record) error       { w.records = append(w.records, r); return nil }
func (w *watch) Sampled(int64, *exec.Tensor) error { w.samples++; return nil }
func (w *watch) Saving(step int64) error           { w.saved = append(w.saved, step); return nil }

func (w *watch) Ended(int64) error { return nil }

func train(t *testing.T, cfg loop.Config) *watch {
	t.Helper()
	alg := bidvl.Defaults()
	alg.Net.Width = 4
	alg.Net.Latent = 3
	src, err := synth.Open(synth.Config{}, "train")
	if err != nil {
		t.Fatal(err)
	}
	ld, err := loader.New(src, loader.Config{Seed: cfg.Seed, Batch: cfg.Batch, Shuffle: true, World: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ld.Close()
	w := &watch{}
	tr, err := loop.New(t.Context(), cfg, loop.Parts{Algorithm: alg, Backend: ref.New(), Loader: ld, Log: slog.New(slog.DiscardHandler), Observer: w})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestResumeEqualsUninterrupted(t *testing.T) {
	whole := loop.Config{Batch: 4, Steps: 4, Seed: 1, CkptDir: t.TempDir(), SampleCount: 4}
	want := train(t, whole)
	half := whole
	half.CkptDir, half.Steps = t.TempDir(), 2
	first := train(t, half)
	half.Steps, half.Resume = 4, true
	second := train(t, half)
	got := append(first.records, second.records...)
	for i, r := range want.records {
		t.Log(r.Step, r.Names, r.Values, r.StepTime)
		for j := range r.Values {
			if got[i].Values[j] != r.Values[j] {
				t.Errorf("step %d: %s is %v after a resume, want %v", i, r.Names[j], got[i].Values[j], r.Values[j])
			}
		}
	}
}
