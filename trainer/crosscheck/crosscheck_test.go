package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
)

func read(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// TestDump writes the smallest case and reads it back: all variables before the steps and
// after each, a number of each column, and what the model is asked besides.
func TestDump(t *testing.T) {
	dir := t.TempDir()
	if err := run(t.Context(), []string{"--out", dir, "--cases", "pcd"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	var s stepDump
	read(t, filepath.Join(dir, "pcd.step.json"), &s)
	if s.Method != "cd" || len(s.Steps) != s.Case.Steps || s.Case.Steps == 0 {
		t.Fatalf("method %q and %d steps, want cd and %d", s.Method, len(s.Steps), s.Case.Steps)
	}
	before := s.Init["model.w"]
	for i, one := range s.Steps {
		if len(one.Report) != len(s.Columns) || len(one.Vars) != len(s.Init) {
			t.Fatalf("step %d: %d numbers of %d columns, %d variables of %d", i, len(one.Report), len(s.Columns), len(one.Vars), len(s.Init))
		}
		w := one.Vars["model.w"]
		if w.Role != "weight" || len(w.X) != w.Shape[0]*w.Shape[1] {
			t.Fatalf("model.w is a %s of shape %v with %d values", w.Role, w.Shape, len(w.X))
		}
		if w.X[0] == before.X[0] {
			t.Errorf("step %d moves no weight", i)
		}
		before = w
	}
	var g graphDump
	read(t, filepath.Join(dir, "pcd.graphs.json"), &g)
	for _, name := range []string{"energies.energy", "score.score", "fisher.fisher", "sample", "logz-exact", "logz-ais", "logz-back"} {
		if len(g.Outputs[name].X) == 0 {
			t.Errorf("no %s among the outputs", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "statistics.json")); err == nil {
		t.Error("the statistics are written where cases are named")
	}
}

// TestCases: every case is a valid configuration under a name of its own.
func TestCases(t *testing.T) {
	cases, err := choose(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, k := range cases {
		if seen[k.Name] {
			t.Errorf("two cases are called %s", k.Name)
		}
		seen[k.Name] = true
		if _, err := k.build(); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}

// TestStatistics: they have no error, and can be written.
func TestStatistics(t *testing.T) {
	s, err := statistics()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// TestNetworks: they have no error, and can be written. The Inception network, on the backend
// that is the reference, takes seconds.
func TestNetworks(t *testing.T) {
	parts := map[string]func(context.Context) (any, error){"resize": resized, "random": random, "classifier": classifier}
	if !testing.Short() {
		parts["inception"] = inceptionLayers
	}
	for name, part := range parts {
		v, err := part(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		switch v := v.(type) {
		case looks:
			if len(v.Outputs) != 20 || len(v.Drawn) != 94*5+1 {
				t.Errorf("%s: %d layers with %d tensors, want 18 layers and the logits and features, of 94 convolutions", name, len(v.Outputs), len(v.Drawn))
			}
		case learned:
			if n := len(v.Runs); n != 4 || len(v.Runs[n-1].Losses) != n || v.Runs[n-1].Losses[n-1] >= v.Runs[n-1].Losses[0] {
				t.Errorf("%s: runs %+v, want four, of which the last makes the loss smaller", name, v.Runs)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--list", "--cases", "lm,vae"}, &out); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("--list: %v, %q", err, out.String())
	}
	err := run(t.Context(), []string{"--cases", "nothing"}, io.Discard)
	if code := cliflag.Exit("crosscheck", err, io.Discard); code != 2 || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("an unknown case: exit code %d, %v", code, err)
	}
}
