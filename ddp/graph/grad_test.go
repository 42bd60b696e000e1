package graph_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

var scalar = graph.T(graph.F64)

// evaluate runs a graph built by f with all its float inputs set to the given
// numbers, and returns the outputs "0", "1", … that f returns.
func evaluate(t *testing.T, in map[string][]float64, f func(b *graph.Builder) []graph.ID) [][]float64 {
	t.Helper()
	var b graph.Builder
	ids := f(&b)
	for i, id := range ids {
		b.Output(fmt.Sprint(i), id)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := ref.New().Compile(g, exec.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range in {
		for i, x := range v {
			if p.Input(name) != nil {
				p.Input(name).SetAt(i, x)
			}
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	out := make([][]float64, len(ids))
	for i := range ids {
		y := p.Output(fmt.Sprint(i))
		for k := range y.Type.Shape.Len() {
			out[i] = append(out[i], y.At(k))
		}
	}
	return out
}

// TestGrad holds gradients with known values, at x = 2 and y = 3.
func TestGrad(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(b *graph.Builder, x, y graph.ID) []graph.ID
		want []float64
	}{
		{"x³, three times", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			f := b.Mul(x, b.Square(x))
			d1 := b.Grad(f, x)[0]
			d2 := b.Grad(d1, x)[0]
			d3 := b.Grad(d2, x)[0]
			return []graph.ID{d1, d2, d3, b.Grad(d3, x)[0]}
		}, []float64{12, 12, 6, 0}},
		{"x^3 by pow, three times", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			d1 := b.Grad(b.Pow(x, 3), x)[0]
			d2 := b.Grad(d1, x)[0]
			d3 := b.Grad(d2, x)[0]
			return []graph.ID{d1, d2, d3, b.Grad(d3, x)[0]}
		}, []float64{12, 12, 6, 0}},
		{"independent is zero", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			return append(b.Grad(b.Square(x), y, x), b.Grad(b.Full(scalar, 5), x)...)
		}, []float64{0, 4, 0}},
		{"itself", func(b *graph.Builder, x, y graph.ID) []graph.ID { return b.Grad(x, x, y) }, []float64{1, 0}},
		{"an intermediate value, and what it depends on", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			h := b.Mul(x, y)
			return b.Grad(b.Add(b.Square(h), x), h, x, y)
		}, []float64{12, 37, 24}},
		{"what a value depends on, and the value", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			h := b.Square(b.Mul(x, y))
			return b.Grad(b.Square(h), x, h)
		}, []float64{2592, 72}},
		{"a value made after", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			f := b.Square(x)
			return b.Grad(f, b.Mul(f, y), x)
		}, []float64{0, 4}},
		{"the gradient of a gradient with respect to another", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			return b.Grad(b.Grad(b.Mul(b.Square(x), b.Square(y)), x)[0], y)
		}, []float64{24}},
		{"stopgrad", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			f := b.Mul(x, b.StopGrad(b.Square(x)))
			return []graph.ID{f, b.Grad(f, x)[0], b.Grad(b.StopGrad(f), x)[0]}
		}, []float64{8, 4, 0}},
		{"a stopped gradient inside a loss", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			g := b.StopGrad(b.Grad(b.Mul(b.Square(x), y), x)[0]) // 2xy = 12
			return b.Grad(b.Mul(g, b.Square(y)), x, y)
		}, []float64{0, 72}},
		{"with respect to a stopped value", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			s := b.StopGrad(x)
			return b.Grad(b.Mul(s, x), s, x)
		}, []float64{2, 2}},
		{"pullback of two values", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			return b.Pullback([]graph.ID{b.Mul(x, y), b.Square(y), x}, []graph.ID{b.Full(scalar, 10), x, y}, x, y)
		}, []float64{33, 32}},
		{"pullback of one value twice", func(b *graph.Builder, x, y graph.ID) []graph.ID {
			f := b.Square(x)
			return b.Pullback([]graph.ID{f, f}, []graph.ID{x, y}, x)
		}, []float64{20}},
		{"ties", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			z := b.Full(scalar, 2) // equal to x: half of each
			return append(b.Grad(b.Max(x, z), x), b.Grad(b.Min(x, z), x)...)
		}, []float64{0.5, 0.5}},
		{"kinks", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			zero := b.Sub(x, b.Full(scalar, 2))
			var g []graph.ID
			for _, f := range []graph.ID{b.Relu(zero), b.Abs(zero), b.LeakyRelu(zero, 0.25), b.Elu(zero, 0.5)} {
				g = append(g, b.Grad(f, zero)[0])
			}
			return g
		}, []float64{0, 0, 0.25, 0.5}},
		{"integers", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			n := b.Cast(b.Scale(x, 3), graph.I32)
			return []graph.ID{b.Grad(b.Cast(n, graph.F64), x)[0], b.Grad(b.Cast(n, graph.F64), n)[0], b.Grad(n, n)[0]}
		}, []float64{0, 0, 0}},
		{"through float32", func(b *graph.Builder, x, _ graph.ID) []graph.ID {
			f := b.Cast(b.Square(b.Cast(x, graph.F32)), graph.F64)
			return []graph.ID{b.Grad(f, x)[0], b.Grad(b.Cast(b.Square(x), graph.BF16), x)[0]}
		}, []float64{4, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := evaluate(t, map[string][]float64{"x": {2}, "y": {3}}, func(b *graph.Builder) []graph.ID {
				return c.f(b, b.Input("x", scalar), b.Input("y", scalar))
			})
			for i, w := range c.want {
				if len(got) != len(c.want) || !(math.Abs(got[i][0]-w) <= 1e-12) {
					t.Fatalf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

// Multiplying by a constant that is not a number gives NaN, as by an array of it, and so
// does the derivative: only a constant that is a number becomes the parameter of Scale.
func TestMulByNaN(t *testing.T) {
	got := evaluate(t, map[string][]float64{"x": {0, 1, math.Inf(1)}}, func(b *graph.Builder) []graph.ID {
		x := b.Input("x", graph.T(graph.F64, 3))
		nan := b.Full(b.Type(x), math.NaN())
		left := b.Mul(nan, x)
		return []graph.ID{left, b.Mul(x, nan), b.Mul(nan, b.Full(b.Type(x), 2)), b.Grad(b.Sum(left), x)[0]}
	})
	for i, values := range got {
		for k, v := range values {
			if !math.IsNaN(v) {
				t.Errorf("output %d: element %d is %v", i, k, v)
			}
		}
	}
}

// TestSharedMaximum: the gradient of a maximum is shared by all that attain it.
func TestSharedMaximum(t *testing.T) {
	got := evaluate(t, map[string][]float64{"x": {1, 5, 5, 2}}, func(b *graph.Builder) []graph.ID {
		x := b.Input("x", graph.T(graph.F64, 4))
		return b.Grad(b.MaxKeep(x, 0), x)
	})
	if fmt.Sprint(got) != "[[0 0.5 0.5 0]]" {
		t.Errorf("got %v", got)
	}
}

// TestDeadOutputs uses one of two outputs of an op, in each way.
func TestDeadOutputs(t *testing.T) {
	got := evaluate(t, map[string][]float64{"x": {1, 4, 3, 2}}, func(b *graph.Builder) []graph.ID {
		x := b.Input("x", graph.T(graph.F64, 1, 1, 2, 2))
		out := b.Apply(graph.MaxPool2D{Window: graph.SquareWindow(2, 1, 0)}, x)
		place := b.Cast(out[1], graph.F64)
		return []graph.ID{place, b.Grad(place, x)[0], b.Grad(b.Square(out[0]), x)[0]}
	})
	if fmt.Sprint(got) != "[[1] [0 0 0 0] [0 8 0 0]]" {
		t.Errorf("max pool: got %v", got)
	}
	got = evaluate(t, map[string][]float64{"x": {3}, "y": {5}}, func(b *graph.Builder) []graph.ID {
		x, y := b.Input("x", scalar), b.Input("y", scalar)
		r := b.AllReduce(collective.Sum, "pair", x, y)
		return b.Grad(b.Square(r[1]), x, y)
	})
	if fmt.Sprint(got) != "[[0] [10]]" {
		t.Errorf("all-reduce: got %v", got)
	}
}

// TestGradAcrossRanks: with T = Σ_r L_r and losses that mix ranks through
// all-reduces, each rank's gradient is ∂T/∂(its own x), to the second order.
func TestGradAcrossRanks(t *testing.T) {
	const ranks = 3
	build := func() *graph.Graph {
		var b graph.Builder
		x := b.Input("x", graph.T(graph.F64, 2))
		mean := b.AllReduce(collective.Mean, "mean", x)[0]
		sum := b.AllReduce(collective.Sum, "sum", b.Mul(b.Sin(x), mean))[0]
		loss := b.Sum(b.Mul(b.Square(b.Sub(x, mean)), b.Tanh(sum)))
		g := b.Grad(loss, x)[0]
		second := b.Sum(b.Mul(b.Sin(g), x))
		for name, id := range map[string]graph.ID{"loss": loss, "g": g, "second": second, "gg": b.Grad(second, x)[0]} {
			b.Output(name, id)
		}
		built, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return built
	}
	xs := [ranks][2]float64{{0.3, -0.8}, {1.1, 0.4}, {-0.5, 0.9}}
	at := func(r, i int, h float64) [ranks]map[string][]float64 {
		moved := xs
		moved[r][i] += h
		return runRanks(t, build(), moved, xs)
	}
	base := runRanks(t, build(), xs, xs)
	total := func(out [ranks]map[string][]float64, name string) (s float64) {
		for r := range out {
			s += out[r][name][0]
		}
		return s
	}
	const h = 1e-4
	for r := range xs {
		for i := range xs[r] {
			for loss, grad := range map[string]string{"loss": "g", "second": "gg"} {
				fd := (8*(total(at(r, i, h), loss)-total(at(r, i, -h), loss)) - total(at(r, i, 2*h), loss) + total(at(r, i, -2*h), loss)) / (12 * h)
				if got := base[r][grad][i]; !(math.Abs(got-fd) <= 1e-9*(1+math.Abs(fd))) {
					t.Errorf("%s: rank %d, element %d: got %.12g, finite differences give %.12g", grad, r, i, got, fd)
				}
			}
		}
	}
}

// runRanks runs g on a group, rank r with inputs x = xs[r] and, if there is one,
// place = places[r].
func runRanks(t *testing.T, g *graph.Graph, xs, places [3][2]float64) [3]map[string][]float64 {
	t.Helper()
	var out [3]map[string][]float64
	var errs [3]error
	var wg sync.WaitGroup
	for r, comm := range exectest.NewGroup(len(out)) {
		wg.Go(func() {
			out[r], errs[r] = runRank(g, comm, xs[r][:], places[r][:])
			if errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func runRank(g *graph.Graph, comm collective.Comm, x, place []float64) (map[string][]float64, error) {
	p, err := ref.New().Compile(g, exec.Options{Name: "rank", Comm: comm})
	if err != nil {
		return nil, err
	}
	copy(p.Input("x").F64(), x)
	if in := p.Input("place"); in != nil {
		copy(in.F64(), place)
	}
	if err := exec.Run(context.Background(), p); err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for _, o := range g.Outputs() {
		out[o.Name] = append([]float64(nil), p.Output(o.Name).F64()...)
	}
	return out, p.Close()
}

// lopsided is x, with a cotangent that is not of x's type.
type lopsided struct{}

func (lopsided) Infer(in []graph.Type) ([]graph.Type, error) { return in, nil }
func (lopsided) String() string                              { return "lopsided" }
func (lopsided) VJP(b *graph.Builder, _ graph.Call, dout []graph.ID) []graph.ID {
	return []graph.ID{b.Sum(dout[0])}
}

// TestWrongCotangent: a formula that gives a cotangent of another type is a programmer's error.
func TestWrongCotangent(t *testing.T) {
	defer func() {
		if r := recover(); r != "graph: VJP of lopsided: cotangent 0 is f64[], input is f64[3]" {
			t.Errorf("recovered %v", r)
		}
	}()
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F64, 3))
	b.Grad(b.Apply(lopsided{}, x)[0], x)
	t.Error("the gradient is made")
}
