package nn

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// TestInitialise makes more variables than are made at a time: all are there,
// in order, with their own values, and what was there is kept.
func TestInitialise(t *testing.T) {
	var specs []Variable
	for i := range 100 {
		init := []Init{Normal(0.5), Ones, nil}[i%3]
		specs = append(specs, Variable{Name: fmt.Sprintf("v%d", i), Type: graph.T(graph.F32, 1+(i*37)%500), Init: init})
	}
	vars := ref.New().NewVars()
	const kept = 7
	old := exec.NewTensor(specs[kept].Type)
	old.SetAt(0, 42)
	if err := vars.Set(specs[kept].Name, old); err != nil {
		t.Fatal(err)
	}
	if err := Initialise(vars, specs, 3); err != nil {
		t.Fatal(err)
	}
	names := []string{specs[kept].Name}
	for i, v := range specs {
		want := v.Value(3)
		if i == kept {
			want = old
		} else {
			names = append(names, v.Name)
		}
		got, err := vars.Get(v.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s has another value than its own", v.Name)
		}
	}
	if got := vars.Names(); !slices.Equal(got, names) {
		t.Errorf("variables are %v, want %v", got, names)
	}
}

// full refuses variables.
type full struct{ exec.Vars }

var errFull = errors.New("no room")

func (full) Type(string) (graph.Type, bool) { return graph.Type{}, false }
func (full) Set(string, *exec.Tensor) error { return errFull }

func TestInitialiseReportsErrors(t *testing.T) {
	specs := slices.Repeat([]Variable{{Name: "v", Type: graph.T(graph.F32, 3), Init: Ones}}, 50)
	if err := Initialise(full{}, specs, 1); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
