package trained

import (
	"log/slog"
	"path/filepath"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
)

var quiet = slog.New(slog.DiscardHandler)

// board are the settings of a small machine on the checkerboard.
func board(t *testing.T, seed uint64) settings.Settings {
	t.Helper()
	m, err := settings.MethodOf("sm-board-dsm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Preset("sm-board-dsm")
	if err != nil {
		t.Fatal(err)
	}
	s := settings.Settings{Algo: m.Name, Split: "train", Batch: 100, Seed: seed}
	if err := s.SetConfig(p.Config); err != nil {
		t.Fatal(err)
	}
	return s
}

// makeRun makes a run directory whose checkpoints of those steps hold the step in
// every value of every weight.
func makeRun(t *testing.T, s settings.Settings, steps ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	dir, err := rundir.Create(path, rundir.Config{Program: "train", World: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	digest, err := rundir.Digest(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if _, err := ckpt.Write(rundir.Layout(path).Ckpt(), ckpt.State{Step: step, Seed: s.Seed, World: 1, ConfigDigest: digest}, values(t, s, step)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func values(t *testing.T, s settings.Settings, step int64) map[string][]ckpt.Named {
	t.Helper()
	model, err := s.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, specs, err := model.Step(1, s.Batch)
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]ckpt.Named{}
	for _, v := range nn.Replicated(specs) {
		x := exec.NewTensor(v.Type)
		for i := range v.Type.Shape.Len() {
			x.SetAt(i, float64(step))
		}
		groups[ckpt.Weights] = append(groups[ckpt.Weights], ckpt.Named{Name: v.Name, Tensor: x})
	}
	return groups
}

// load loads a run that must be there.
func load(t *testing.T, path string, step int64) (*Run, exec.Backend) {
	t.Helper()
	backend := ref.New()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := Load(path, Choice{Step: step}, backend, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r, backend
}

// weight is the first value of the machine's c.
func weight(t *testing.T, r *Run) float64 {
	t.Helper()
	x, err := r.Vars.Get("model.c")
	if err != nil {
		t.Fatal(err)
	}
	return x.At(0)
}
