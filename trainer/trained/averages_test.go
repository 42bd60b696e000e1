package trained

import (
	"strings"
	"testing"

	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// Averages take the place of the weights that they are of, and of no others.
func TestAverages(t *testing.T) {
	s := board(t, 1)
	path := makeRun(t, s, 10)
	dir := rundir.Layout(path).Ckpt()
	state, groups, err := ckpt.Read(dir + "/" + ckpt.Name(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range values(t, s, 7)[ckpt.Weights] {
		if n.Name == "model.c" {
			groups[ckpt.Averages] = append(groups[ckpt.Averages], n)
		}
	}
	state.Step = 20
	if _, err := ckpt.Write(dir, state, groups); err != nil {
		t.Fatal(err)
	}
	backend := ref.New()
	defer func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	}()
	for averages, want := range map[bool]float64{false: 10, true: 7} {
		r, err := Load(path, Choice{20, averages}, backend, quiet)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Vars.Get("model.b")
		if err != nil {
			t.Fatal(err)
		}
		if c := weight(t, r); c != want || b.At(0) != 10 || r.Averages != averages {
			t.Errorf("averages %v: weights %v and %v, want %v and 10", averages, c, b.At(0), want)
		}
		if r.After() != After(20, averages) {
			t.Errorf("%q, want %q", r.After(), After(20, averages))
		}
		if first, err := r.Untrained(backend); err != nil || first.Averages {
			t.Errorf("before its first step it has averages (%v)", err)
		}
	}
	if _, err := Load(path, Choice{10, true}, backend, quiet); err == nil || !strings.Contains(err.Error(), "/"+ckpt.Name(10)+" has no moving averages of weights, as a run has that is trained with --ema: leave --ema out") {
		t.Errorf("of a checkpoint without averages: %v", err)
	}
}
