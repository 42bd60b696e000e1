package exectest

import (
	"errors"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// runMemory: a program whose values have too little room is not compiled, and the error
// says how much it takes; with so much it is.
func runMemory(t *testing.T, be exec.Backend, o Options) {
	defer closeBackend(t, be)
	g := buildGraph(t, func(b *graph.Builder) {
		x := b.Input("x", graph.T(o.dtypes()[0], 64, 64))
		y := b.MatMul(x, x, false, false)
		b.Output("z", b.Sum(b.MatMul(y, b.MatMul(y, x, false, false), false, false), 0, 1))
	})
	compile := func(most int64) (int64, error) {
		p, err := be.Compile(g, exec.Options{Vars: be.NewVars(), MaxBytes: most})
		if err != nil {
			return 0, err
		}
		return p.Stats().PeakBytes, p.Close()
	}
	takes, err := compile(0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = compile(1)
	if o.NoLimit {
		if err != nil {
			t.Errorf("with room for a byte: %v, want a program, as no memory is planned", err)
		}
		return
	}
	short, ok := errors.AsType[*exec.MemoryError](err)
	if !ok || short.Max != 1 || short.Need <= 1 || short.Need > takes {
		t.Fatalf("with room for a byte: %v, want a *MemoryError of at most the %d bytes that the program takes", err, takes)
	}
	if _, err := compile(takes); err != nil {
		t.Errorf("with room for the %d bytes that it takes: %v", takes, err)
	}
}
