package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/ddp/graph"
)

// cut is x[lo:hi] on one axis.
type cut struct{ axis, lo, hi int }

// cuts are those whose gradients are looked at, of an array (4, 12), and how many nodes
// of each kind the gradient of the function of them has.
var cuts = []struct {
	name         string
	cuts         []cut
	concat, pads int
}{
	{"one", []cut{{1, 2, 5}}, 0, 1},
	{"gates", []cut{{1, 0, 3}, {1, 3, 6}, {1, 6, 9}, {1, 9, 12}}, 1, 0},
	{"rows", []cut{{0, 0, 1}, {0, 1, 2}, {0, 2, 4}}, 1, 0},
	{"in any order", []cut{{1, 6, 9}, {1, 0, 3}, {1, 9, 12}, {1, 3, 6}}, 1, 0},
	{"gaps", []cut{{1, 1, 3}, {1, 3, 4}, {1, 7, 9}}, 1, 0},
	{"an overlap", []cut{{1, 0, 4}, {1, 4, 8}, {1, 7, 12}}, 1, 1},
	{"the same ends", []cut{{1, 0, 6}, {1, 6, 12}, {1, 0, 5}}, 1, 1},
	{"two axes", []cut{{0, 0, 2}, {0, 2, 4}, {1, 0, 5}, {1, 5, 12}}, 2, 0},
	{"axes that would follow each other", []cut{{0, 0, 2}, {1, 2, 12}}, 0, 2},
	{"axes in turn", []cut{{0, 0, 2}, {1, 0, 5}, {0, 2, 4}}, 0, 3},
}

// ofCuts is Σ Σ wₖ·sin(cutₖ), and its gradient by hand: padded parts, added one by one.
func ofCuts(b *graph.Builder, x graph.ID, list []cut) (f, byHand graph.ID) {
	f, byHand = b.Zeros(scalar), b.Zeros(b.Type(x))
	for k, c := range list {
		part, w := b.Slice(x, c.axis, c.lo, c.hi, 1), float64(k)+0.25
		f = b.Add(f, b.Scale(b.Sum(b.Sin(part)), w))
		byHand = b.Add(byHand, b.Pad(b.Scale(b.Cos(part), w), c.axis, c.lo, b.Shape(x).At(c.axis)-c.hi))
	}
	return f, byHand
}

// TestPiecesBecomeOne: the gradient of what is cut side by side is one Concat, and the
// numbers are those of padded parts that are added up, also when it is differentiated
// again, twice.
func TestPiecesBecomeOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := make([]float64, 4*12)
	for i := range numbers {
		numbers[i] = rng.NormFloat64()
	}
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			out := evaluate(t, map[string][]float64{"x": numbers}, func(b *graph.Builder) (ids []graph.ID) {
				x := b.Input("x", graph.T(graph.F64, 4, 12))
				f, byHand := ofCuts(b, x, c.cuts)
				g := b.Grad(f, x)[0]
				if concat, pads := count(t, b, g); concat != c.concat || pads != c.pads {
					t.Errorf("%d concats and %d pads, want %d and %d", concat, pads, c.concat, c.pads)
				}
				ids = append(ids, g, byHand)
				for range 2 { // of the Hessian's diagonal, and what follows
					g, byHand = b.Grad(b.Mul(g, g), x)[0], b.Grad(b.Mul(byHand, byHand), x)[0]
					ids = append(ids, g, byHand)
				}
				return ids
			})
			for k := 0; k < len(out); k += 2 {
				if !slices.Equal(out[k], out[k+1]) {
					t.Errorf("order %d: %v, by hand %v", k/2+1, out[k], out[k+1])
				}
			}
		})
	}
}

// count is how many nodes that y depends on are Concats, and how many are Pads.
func count(t *testing.T, b *graph.Builder, y graph.ID) (concat, pads int) {
	t.Helper()
	seen := map[graph.ID]bool{}
	var visit func(id graph.ID)
	visit = func(id graph.ID) {
		if seen[id] {
			return
		}
		seen[id] = true
		switch b.Node(id).Op.(type) {
		case graph.Concat:
			concat++
		case graph.Pad:
			pads++
		}
		for _, in := range b.Node(id).In {
			visit(in)
		}
	}
	visit(y)
	return concat, pads
}

// TestPiecesAndOthers: cotangents of another kind before, between and after the pieces
// are added in the order in which they come, to the bit.
func TestPiecesAndOthers(t *testing.T) {
	parts := []cut{{0, 0, 7}, {0, 0, 3}, {0, 2, 5}, {0, 3, 7}, {0, 5, 6}, {0, 6, 7}} // the first is all
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		numbers := make([]float64, 7)
		for i := range numbers {
			numbers[i] = rng.NormFloat64()
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			out := evaluate(t, map[string][]float64{"x": numbers}, func(b *graph.Builder) []graph.ID {
				x := b.Input("x", graph.T(graph.F64, 7))
				var y, dy []graph.ID
				byHand := b.Zeros(b.Type(x))
				for i, c := range parts {
					part := b.Slice(x, 0, c.lo, c.hi, 1)
					y, dy = append(y, b.Scale(part, float64(i+2))), append(dy, b.Exp(part))
				}
				for i, c := range slices.Backward(parts) { // later nodes come first
					byHand = b.Add(byHand, b.Pad(b.Scale(dy[i], float64(i+2)), 0, c.lo, 7-c.hi))
				}
				return append(b.Pullback(y, dy, x), byHand)
			})
			if !slices.Equal(out[0], out[1]) {
				t.Errorf("%v, by hand %v", out[0], out[1])
			}
		})
	}
}

// Cuts with steps, and on two axes at once, are no pieces: their cotangents are added up as they
// are, though their numbers would fit side by side.
func TestNoPieces(t *testing.T) {
	numbers := make([]float64, 4*12)
	for i := range numbers {
		numbers[i] = float64(i) / 8
	}
	for _, c := range []struct {
		name string
		cuts []graph.Slice
	}{
		{"steps", []graph.Slice{
			{Start: graph.D(0, 0), Limit: graph.D(4, 6), Step: graph.D(1, 2)},
			{Start: graph.D(0, 6), Limit: graph.D(4, 12), Step: graph.D(1, 1)},
		}},
		{"corners", []graph.Slice{
			{Start: graph.D(1, 0), Limit: graph.D(3, 6), Step: graph.D(1, 1)},
			{Start: graph.D(1, 6), Limit: graph.D(3, 12), Step: graph.D(1, 1)},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := make([]float64, len(numbers))
			for k, s := range c.cuts {
				for i := s.Start.At(0); i < s.Limit.At(0); i += s.Step.At(0) {
					for j := s.Start.At(1); j < s.Limit.At(1); j += s.Step.At(1) {
						want[12*i+j] += 2 * numbers[12*i+j] * float64(k+2)
					}
				}
			}
			got := evaluate(t, map[string][]float64{"x": numbers}, func(b *graph.Builder) []graph.ID {
				x, f := b.Input("x", graph.T(graph.F64, 4, 12)), b.Zeros(scalar)
				for k, s := range c.cuts {
					f = b.Add(f, b.Scale(b.Sum(b.Square(b.Apply(s, x)[0])), float64(k+2)))
				}
				return b.Grad(f, x)
			})
			if !slices.Equal(got[0], want) {
				t.Errorf("got %v, want %v", got[0], want)
			}
		})
	}
}
