package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompareMissing: what the program no longer writes is told, and no agreement.
func TestCompareMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("imports PyTorch, which takes seconds; left out under -short")
	}
	python, err := exec.LookPath("/usr/bin/python3") // Debian's, as in the Makefile
	if err != nil || exec.Command(python, "-c", "import torch").Run() != nil {
		t.Skip("there is no /usr/bin/python3 with PyTorch (python3-torch)")
	}
	dir := t.TempDir()
	if err := run(t.Context(), []string{"--out", dir, "--cases", "pcd"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	compare := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), python, "peers/compare.py", dir).CombinedOutput()
		return string(out), err
	}
	if out, err := compare(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lessenSteps(t, filepath.Join(dir, "pcd.step.json"))
	lessenGraphs(t, filepath.Join(dir, "pcd.graphs.json"))
	out, err := compare()
	if err == nil {
		t.Error("it ends with 0")
	}
	for _, want := range []string{"writes no energies.energy", "writes no logz-exact", "reports no grad_model", "has no adam.model.model.w.m"} {
		if !strings.Contains(out, "pcd: the program "+want+"\n") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	t.Run("no peer", func(t *testing.T) {
		path := filepath.Join(dir, "pcd.step.json")
		var d stepDump
		read(t, path, &d)
		d.Method = "mine"
		write(t, path, d)
		out, err := compare()
		if want := "pcd: there is no peers/mine.py, which computes --algo mine again\n"; err == nil || !strings.Contains(out, want) || strings.Contains(out, "Traceback") {
			t.Errorf("want %q, and no traceback, got %v\n%s", want, err, out)
		}
	})
}

// lessenSteps takes an entry of the report and a variable from a dump.
func lessenSteps(t *testing.T, path string) {
	var d stepDump
	read(t, path, &d)
	column := slices.Index(d.Columns, "grad_model")
	d.Columns = slices.Delete(d.Columns, column, column+1)
	delete(d.Init, "adam.model.model.w.m")
	for i := range d.Steps {
		one := &d.Steps[i]
		one.Report = slices.Delete(one.Report, column, column+1)
		delete(one.Vars, "adam.model.model.w.m")
	}
	write(t, path, d)
}

// lessenGraphs takes two outputs from a dump.
func lessenGraphs(t *testing.T, path string) {
	var d graphDump
	read(t, path, &d)
	delete(d.Outputs, "energies.energy")
	delete(d.Outputs, "logz-exact")
	write(t, path, d)
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	if err := writeJSON(path, v); err != nil {
		t.Fatal(err)
	}
}
