package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// moved is what ops that move or combine elements make of an image, by name: each does
// something else along each axis.
func moved(b *graph.Builder, x graph.ID) map[string]graph.ID {
	d, s := graph.D, b.Shape(x)
	out := map[string]graph.ID{
		"slice": b.Apply(graph.Slice{Start: d(1, 0, 1, 2), Limit: d(2, 3, 4, 5), Step: d(1, 2, 3, 1)}, x)[0],
		"pad":   b.Apply(graph.Pad{Lo: d(0, 1, 2, 3), Hi: d(3, 0, 1, 2), Gap: d(1, 2, 0, 1)}, x)[0],
	}
	turned := b.Sub(b.Full(graph.T(graph.I32, 2), 1), b.Iota(graph.T(graph.I32, 2), 0)) // 1, 0
	out["gather"] = b.Gather(x, turned)
	out["scatter"] = b.ScatterAdd(x, turned, 3)
	for axis := range 4 {
		out[fmt.Sprint("concat ", axis)] = b.Concat(axis, x, b.Neg(x), x)
		out[fmt.Sprint("sum ", axis)] = b.SumKeep(x, axis)
		out[fmt.Sprint("most but of ", axis)] = b.MaxKeep(x, (axis+1)%4, (axis+2)%4, (axis+3)%4)
		out[fmt.Sprint("index ", axis)] = b.Mul(x, b.Iota(b.Type(x), axis))
		out[fmt.Sprint("repeated ", axis)] = b.BroadcastTo(b.MaxKeep(x, axis), s.With(axis, 7))
	}
	for _, p := range [][]int{{0, 2, 3, 1}, {0, 3, 1, 2}, {3, 2, 1, 0}, {1, 0, 2, 3}, {2, 0, 3, 1}} {
		out[fmt.Sprint("transpose ", p)] = b.Transpose(x, p...)
	}
	return out
}

// namesOfMoved are the names, in order.
func namesOfMoved(t graph.Type) []string {
	var b graph.Builder
	return slices.Sorted(maps.Keys(moved(&b, b.Input("x", t))))
}

// What is made of an image is the same whatever order its elements lie in: the reference
// knows one. A pool of single pixels is the image, in channels-last order.
func TestLayoutsOfImages(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 2, 3, 4, 5))
	for i := range x.Type.Shape.Len() {
		x.SetAt(i, float64(i*37%120-60))
	}
	image := func(b *graph.Builder, x graph.ID) graph.ID { return b.AvgPool2D(x, graph.SquareWindow(1, 1, 0)) }
	for _, name := range namesOfMoved(x.Type) {
		for from := range 2 {
			for to := range 2 {
				holdsExactly(t, fmt.Sprint(name, ", from an image ", from, ", to one ", to), x, func(b *graph.Builder) []graph.ID {
					y := b.Input("x", x.Type)
					if from > 0 {
						y = image(b, y)
					}
					y = moved(b, y)[name]
					if to > 0 {
						y = image(b, y)
					}
					return []graph.ID{y, b.Neg(y)}
				})
			}
		}
	}
}

// The gradient of weights is made in the order of weights, and turned where an image is
// added to it: devices make no other, unless they want weights channels-last.
func TestGradientsOfWeightsLieAsWeights(t *testing.T) {
	for _, last := range []bool{false, true} {
		var b graph.Builder
		x, w := b.Input("x", graph.T(graph.F32, 4, 4, 3, 3)), b.Var("w", graph.T(graph.F32, 4, 4, 3, 3))
		y := b.Conv2D(x, w, same3)
		b.Output("y", b.Add(y, b.Grad(b.Sum(b.Square(y)), w)[0]))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "weights", WeightsLast: last})
		for _, s := range p.Steps {
			if s.Kind() == KindConv2DGradW && p.Values[s.Out[0]].Last != last {
				t.Errorf("weights last %v: the gradient is so: %v", last, !last)
			}
		}
	}
}

// Numbers that are the same everywhere are filled in where an op moves them.
func TestNumbersAreMoved(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.F64, 2, 3, 4, 5))
	for _, name := range namesOfMoved(x.Type) {
		holdsExactly(t, name, x, func(b *graph.Builder) []graph.ID { return []graph.ID{moved(b, b.Full(x.Type, 3))[name]} })
	}
}
