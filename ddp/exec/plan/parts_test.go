package plan

import (
	"math"
	"slices"
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
			for _, v := range append(slices.Clone(p.Steps[i].In), p.Steps[i].Out...) {
				if _, _, at := p.View(v); at%Align != 0 {
					t.Errorf("%s: step %d has an array at %d, want whole lines", tt.name, i, at)
				}
			}
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

// A part of an array that a variable is assigned is copied there: the array itself, of which
// others have their parts, is larger than the variable. A part of a part is the rank's of
// both.
func TestPartAssigned(t *testing.T) {
	const part = 8
	for rank := range 2 {
		var b graph.Builder
		b.Assign(b.Var("v", graph.T(graph.F64, part)), b.Part(2, b.Part(2, b.Exp(b.Input("x", graph.T(graph.F64, 4*part))))))
		b.Assign(b.Var("u", graph.T(graph.F64, part)), b.Part(2, b.Neg(b.Slice(b.Input("x", graph.T(graph.F64, 4*part)), 0, 0, 2*part, 1))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		x, results := runAlike(t, g, rank)
		for i := range part {
			if got, want := results[0].At(i), math.Exp(x.At(rank*3*part+i)); !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("rank %d, element %d: %v, want %v", rank, i, got, want)
			}
			if got, want := results[1].At(i), -x.At(rank*part+i); got != want {
				t.Errorf("rank %d, element %d: %v, want %v", rank, i, got, want)
			}
		}
	}
}

// What reads a part of an array reads it from memory, also in the space of the group that
// makes the array: there a point's own element is another one.
func TestPartIsNotItsArray(t *testing.T) {
	const part = 16 // a whole line
	for rank := range 2 {
		var b graph.Builder
		y := b.Exp(b.Input("x", graph.T(graph.F32, 2, part)))
		mine := b.Reshape(b.Part(2, b.Reshape(y, graph.D(2*part))), graph.D(1, part))
		b.Assign(b.Var("v", graph.T(graph.F32, 2, part)), b.Sub(y, b.BroadcastTo(mine, graph.D(2, part))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		x, results := runAlike(t, g, rank)
		for i := range 2 * part {
			want := math.Exp(x.At(i)) - math.Exp(x.At(rank*part+i%part))
			if got := results[0].At(i); !(math.Abs(got-want) <= 1e-6) {
				t.Errorf("rank %d, element %d: %v, want %v", rank, i, got, want)
			}
		}
	}
}
