package plan

import (
	"slices"
	"testing"

	"ebtrain/ddp/graph"
)

// sumOfGathered is a step with a sum of an array that follows from w and of one that is made later;
// w is a variable, or is gathered of parts, alone or with another and padded.
func sumOfGathered(t *testing.T, how string) *Plan {
	t.Helper()
	var b graph.Builder
	typ := graph.T(graph.F32, 15, 30)
	if how == "gathered alone" {
		typ = graph.T(graph.F32, 16, 32)
	}
	w := b.Var("w", typ)
	rows, n := typ.Shape.At(0), typ.Shape.Len()
	switch how {
	case "gathered alone":
		all := b.Reshape(b.AllGather(2, "w", b.Var("w.part", graph.T(graph.F32, n/2))), typ.Shape)
		b.Assign(w, all)
		w = all
	case "gathered with another":
		part := (n + 1) / 2
		both := b.Concat(0, b.Var("u.part", graph.T(graph.F32, 3)), b.Var("w.part", graph.T(graph.F32, part)))
		all := b.Reshape(b.AllGather(2, "w and u", both), graph.D(2, 3+part))
		for _, of := range []struct {
			name     string
			typ      graph.Type
			from, to int
		}{{"u", graph.T(graph.F32, 5), 0, 3}, {"w", typ, 3, 3 + part}} {
			flat := b.Reshape(b.Slice(all, 1, of.from, of.to, 1), graph.D(2*(of.to-of.from)))
			whole := b.Reshape(b.Slice(flat, 0, 0, of.typ.Shape.Len(), 1), of.typ.Shape)
			b.Assign(b.Var(of.name, of.typ), whole)
			w = whole
		}
	}
	h := b.MatMul(b.Input("x", graph.T(graph.F32, rows, 8)), b.Input("z", graph.T(graph.F32, 8, typ.Shape.At(1))), false, false)
	b.Output("y", b.Sum(b.Add(b.Square(w), h)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, g, 2)
}

// What is gathered into a variable at the begin of a step is computed with as the variable
// is: sums are taken apart in the same way, so they have the same bits.
func TestArrivalsAreVariables(t *testing.T) {
	shapes := func(p *Plan) (all []int) {
		for _, s := range p.Steps {
			if f, ok := s.Op.(*Fused); ok {
				all = append(all, len(f.Sums), len(f.Loads), len(f.Code))
			}
		}
		return all
	}
	for _, how := range []string{"gathered alone", "gathered with another"} {
		want, got := sumOfGathered(t, "variable"), sumOfGathered(t, how)
		if !slices.Equal(shapes(got), shapes(want)) {
			t.Errorf("%s: the sum is not made as that of a variable:\n%s\nwant\n%s", how, dump(t, got), dump(t, want))
		}
	}
}

// What is gathered of numbers that were computed, if of variables alone, comes behind these: who
// reads it is in no group with them.
func TestComputedIsNoArrival(t *testing.T) {
	for _, moved := range []int{0, 100} { // numbers that are gathered beside them, as they are
		var b graph.Builder
		v, w := b.Var("v", graph.T(graph.F32, 16, 32)), b.Var("w", graph.T(graph.F32, 16, 32))
		n := 256 - moved
		part := b.Mul(b.Var("w.part", graph.T(graph.F32, n)), b.BroadcastTo(b.Reshape(b.Sum(b.Square(v)), graph.D(1)), graph.D(n)))
		if moved > 0 {
			part = b.Concat(0, part, b.Slice(b.Var("u.part", graph.T(graph.F32, 256)), 0, 0, moved, 1))
		}
		all := b.Reshape(b.AllGather(2, "w", part), graph.D(16, 32))
		b.Assign(w, all)
		b.Output("y", b.Sum(b.Mul(b.Square(v), all)))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := compile(t, g, 2)
		wait := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind() == KindWait })
		sum := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind() == KindFused })
		if sum < 0 || sum > wait {
			t.Errorf("the sum of squares is step %d, and the gathered is there at %d\n%s", sum, wait, dump(t, p))
		}
	}
}
