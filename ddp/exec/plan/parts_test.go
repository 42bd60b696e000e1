package plan

import (
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// partsPlan is a step of descent of a variable of which each of two ranks moves a part, as
// rank 1 runs it; late reads the old value after the new one is known.
func partsPlan(t *testing.T, part int, late bool) *Plan {
	t.Helper()
	var b graph.Builder
	w := b.Var("w", graph.T(graph.F32, 2*part))
	g := b.ReduceScatter(collective.Mean, 2, "g", b.Mul(b.Input("x", b.Type(w)), w))
	next := b.AllGather(2, "w", b.Sub(b.Part(2, w), g))
	b.Assign(w, next)
	if late {
		b.Output("moved", b.Sub(next, w))
	}
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(built, Options{World: 2, Rank: 1})
	p.Allocate()
	return p
}

// What is gathered is gathered in the variable, where nothing reads the old value any
// more; parts are read and written in place, where they are aligned.
func TestGatheredInPlace(t *testing.T) {
	for _, tt := range []struct {
		name   string
		part   int
		late   bool
		inVar  bool
		bucket int // bytes
	}{
		{"aligned", 32, false, true, 256},
		{"the old value is read later", 32, true, false, 512},
		{"no whole lines", 5, false, false, 2 * 64},
	} {
		p := partsPlan(t, tt.part, tt.late)
		inVar, moves := false, 0
		for i := range p.Steps {
			switch op := p.Steps[i].Op.(type) {
			case Start:
				if op.Kind == collective.AllGather {
					space, _, _ := p.View(op.Bucket)
					inVar = space == Var
				}
			case Copy, graph.Slice:
				moves++
			}
		}
		if inVar != tt.inVar || inVar && moves > 0 {
			t.Errorf("%s: gathered in the variable: %v, %d copies and slices", tt.name, inVar, moves)
		}
		if p.BucketBytes != tt.bucket {
			t.Errorf("%s: buckets of %d bytes, want %d", tt.name, p.BucketBytes, tt.bucket)
		}
	}
}
