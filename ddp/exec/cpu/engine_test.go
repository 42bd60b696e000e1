package cpu

import (
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/linalg/dnnl"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

// TestWithoutLibrary: a program that finds no oneDNN trains with the plain Go
// engine, to the bits, and says so.
func TestWithoutLibrary(t *testing.T) {
	team := threads.NewTeam(2)
	defer team.Close()
	want := losses(t, open(t, Config{Threads: 2, Engine: winograd.On(team, native.On(team))}))
	t.Setenv(dnnl.LibraryVariable, "/nowhere/libdnnl.so")
	b := open(t, Config{Threads: 2})
	if got := losses(t, b); !slices.Equal(got, want) {
		t.Errorf("the losses are %v, plain Go's %v", got, want)
	}
	if !strings.Contains(b.Name(), "plain Go") {
		t.Errorf("the engine is %s, want plain Go", b.Name())
	}
	if got := exec.Describe(b); got != b.Name() && got != b.Name()+" (/nowhere/libdnnl.so was not found: mend or unset EBTRAIN_LIBDNNL)" {
		t.Errorf("the backend says %q", got)
	}
}

// losses are those of a few steps.
func losses(t *testing.T, be exec.Backend) (all []float64) {
	p := compileStep(t, be, 4, 8, exec.Options{})
	for range 3 {
		if err := exec.Run(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Output("upper").At(0), p.Output("lower").At(0))
	}
	return all
}
