package trained

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// Each checkpoint can be had, and the newest without knowing its step.
func TestLoadStep(t *testing.T) {
	path := makeRun(t, board(t, 1), 10, 20, 30)
	for step, want := range map[int64]int64{Newest: 30, 10: 10, 20: 20, 30: 30} {
		r, _ := load(t, path, step)
		if r.State.Step != want || weight(t, r) != float64(want) {
			t.Errorf("step %d: got the weights %v of step %d, want those of %d", step, weight(t, r), r.State.Step, want)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	three, none := makeRun(t, board(t, 1), 10, 20, 30), makeRun(t, board(t, 1))
	one := makeRun(t, board(t, 1), 7)
	var many []int64
	for i := range int64(20) {
		many = append(many, 5*i)
	}
	unknown := board(t, 1)
	unknown.Algo = "gan"
	other := makeRun(t, board(t, 2), 5)
	if err := os.Rename(filepath.Join(other, "ckpt", ckpt.Name(5)), filepath.Join(one, "ckpt", ckpt.Name(5))); err != nil {
		t.Fatal(err)
	}
	renamed := makeRun(t, board(t, 1), 10)
	dir := rundir.Layout(renamed).Ckpt()
	if err := os.Rename(filepath.Join(dir, ckpt.Name(10)), filepath.Join(dir, ckpt.Name(11))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path string
		step       int64
		want       string
	}{
		{"another step", three, 15, three + " holds no checkpoint of step 15: it has those of steps 10, 20, 30 (train keeps the newest --ckpt-keep, 0 all)"},
		{"of many", makeRun(t, board(t, 1), many...), 1, "it has 20, of steps 0, 5, 10, …, 95 ("},
		{"of one", makeRun(t, board(t, 1), 8), 1, "it has that of step 8 ("},
		{"of none", none, 1, "holds no checkpoint yet"},
		{"newest of none", none, Newest, "holds no checkpoint yet"},
		{"unknown method", makeRun(t, unknown), Newest, `unknown --algo "gan": this build has bidvl, `},
		{"another run's", one, 5, "is a checkpoint of another run or step: it holds step 5 of the settings sha256:"},
		{"renamed", renamed, 11, "is a checkpoint of another run or step: it holds step 10 of"},
		{"no run", t.TempDir(), Newest, "is not a run directory"},
	} {
		backend := ref.New()
		_, err := Load(tt.path, Choice{Step: tt.step}, backend, quiet)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one sentence with %q", tt.name, err, tt.want)
		}
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The untrained run has the initial values under the run's seed, and the trained
// one keeps its own.
func TestUntrained(t *testing.T) {
	r, backend := load(t, makeRun(t, board(t, 3), 10), Newest)
	first, err := r.Untrained(backend)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := r.variables()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range nn.Replicated(specs) {
		got, err := first.Vars.Get(v.Name)
		if err != nil {
			t.Fatal(err)
		}
		want := v.Value(3)
		for i := range v.Type.Shape.Len() {
			if got.At(i) != want.At(i) {
				t.Errorf("%s[%d] is %v, want %v", v.Name, i, got.At(i), want.At(i))
			}
		}
	}
	if weight(t, r) != 10 || weight(t, first) == 10 || first.State.Step != 0 {
		t.Errorf("trained %v, untrained %v", weight(t, r), weight(t, first))
	}
}

// Of all checkpoints of a run the damaged are left out and told of, and those that are
// whole are not lost with them; one that is named is given whatever it is.
func TestCheckpointsDamaged(t *testing.T) {
	path := makeRun(t, board(t, 1), 2, 4, 6, 8)
	weights := filepath.Join(rundir.Layout(path).Ckpt(), ckpt.Name(4), "weights.safetensors")
	b, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	state := filepath.Join(rundir.Layout(path).Ckpt(), ckpt.Name(6), "state.json")
	if err := errors.Join(os.WriteFile(weights, b, 0o644), os.Remove(state)); err != nil {
		t.Fatal(err)
	}
	var told []string
	tell := func(err error) { told = append(told, err.Error()) }
	steps, err := Checkpoints(path, nil, tell)
	if err != nil || !slices.Equal(steps, []int64{2, 8}) || len(told) != 2 || !strings.Contains(told[0], weights+": SHA-256 is") || !strings.Contains(told[1], state+": missing") {
		t.Errorf("got %v, %v, told %q; want 2 and 8", steps, err, told)
	}
	if steps, err := Checkpoints(path, []int64{4, 8}, tell); err != nil || !slices.Equal(steps, []int64{4, 8}) || len(told) != 2 {
		t.Errorf("named: %v, %v, told %q", steps, err, told)
	}
	for _, step := range []int64{2, 8} {
		if err := os.Remove(filepath.Join(rundir.Layout(path).Ckpt(), ckpt.Name(step), "state.json")); err != nil {
			t.Fatal(err)
		}
	}
	if steps, err := Checkpoints(path, nil, tell); err == nil || !strings.Contains(err.Error(), "none of the 4 checkpoints in ") {
		t.Errorf("all damaged: %v, %v", steps, err)
	}
}
