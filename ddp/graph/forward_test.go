package graph_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// functions are smooth functions of one tensor.
var functions = []struct {
	name string
	x    graph.Shape
	f    func(b *graph.Builder, x graph.ID) graph.ID
}{
	{"pointwise", graph.D(5), func(b *graph.Builder, x graph.ID) graph.ID { return b.Mul(b.Tanh(x), b.Exp(b.Sin(x))) }},
	{"quotient and root", graph.D(3, 1), func(b *graph.Builder, x graph.ID) graph.ID {
		return b.Div(b.Cos(x), b.Sqrt(b.Shift(b.Square(x), 1)))
	}},
	{"matrix of itself", graph.D(3, 5), func(b *graph.Builder, x graph.ID) graph.ID {
		return b.Sin(b.MatMul(x, x, false, true))
	}},
	{"log-sum-exp", graph.D(3, 7), func(b *graph.Builder, x graph.ID) graph.ID { return b.LogSumExp(b.Scale(x, 2), 1) }},
	{"a scalar", graph.D(2, 3), func(b *graph.Builder, x graph.ID) graph.ID { return b.Square(b.Mean(b.Softplus(x))) }},
	{"a gradient", graph.D(2, 5), func(b *graph.Builder, x graph.ID) graph.ID {
		return b.Grad(b.Sum(b.Mul(b.Sin(x), b.Sigmoid(b.MatMul(x, b.MatMul(x, x, true, false), false, false)))), x)[0]
	}},
	{"another shape", graph.D(1, 2, 5, 7), func(b *graph.Builder, x graph.ID) graph.ID {
		y := b.Conv2D(b.Pad(x, 3, 1, 0), b.Sin(b.Iota(graph.T(graph.F64, 3, 2, 3, 3), 2)), graph.NewConv(3, 2, 1))
		return b.Reshape(b.Transpose(b.Softplus(b.Tanh(y)), 0, 2, 3, 1), graph.D(b.Shape(y).Len()))
	}},
	{"itself", graph.D(4), func(_ *graph.Builder, x graph.ID) graph.ID { return x }},
	{"a constant", graph.D(4), func(b *graph.Builder, _ graph.ID) graph.ID { return b.Ones(graph.T(graph.F64, 3)) }},
	{"in a world of one", graph.D(3), func(b *graph.Builder, x graph.ID) graph.ID {
		r := b.AllReduce(collective.Sum, "test", b.Sin(x), b.Cos(x))
		return b.Mul(r[0], b.Tanh(r[0]))
	}},
}

// numbers are n numbers in ±1, other ones for each stream.
func numbers(stream, n int) []float64 {
	t := exectest.Arg{Shape: graph.D(n), Fill: exectest.Between(-1, 1)}.Tensor(graph.F64, "forward", stream)
	return t.F64()
}

// moved is x + h·d.
func moved(x, d []float64, h float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = x[i] + h*d[i]
	}
	return y
}

// differences are five-point central differences of f in h at 0, by element.
func differences(f func(h float64) []float64) []float64 {
	const h = 2e-4
	a, b, c, d := f(h), f(-h), f(2*h), f(-2*h)
	out := make([]float64, len(a))
	for i := range out {
		out[i] = (8*(a[i]-b[i]) - c[i] + d[i]) / (12 * h)
	}
	return out
}

func agree(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Errorf("%s, element %d: got %.12g, want %.12g", what, i, got[i], want[i])
		}
	}
}

// Pushforwards of pushforwards, of orders 1 to 3, against finite differences of
// the order before.
func TestPushforward(t *testing.T) {
	for _, m := range functions {
		t.Run(m.name, func(t *testing.T) {
			n := m.x.Len()
			in := map[string][]float64{"x": numbers(0, n)}
			for k := 1; k <= 3; k++ {
				in[fmt.Sprint("v", k)] = numbers(k, n)
			}
			at := func(k int, h float64) [][]float64 {
				here := map[string][]float64{"x": moved(in["x"], in[fmt.Sprint("v", max(k, 1))], h), "v1": in["v1"], "v2": in["v2"], "v3": in["v3"]}
				return evaluate(t, here, func(b *graph.Builder) []graph.ID {
					typ := graph.Type{DType: graph.F64, Shape: m.x}
					x := b.Input("x", typ)
					ys := []graph.ID{m.f(b, x)}
					for k := 1; k <= 3; k++ {
						ys = append(ys, b.Pushforward(ys[k-1], x, b.Input(fmt.Sprint("v", k), typ)))
					}
					return ys
				})
			}
			base := at(0, 0)
			for k := 1; k <= 3; k++ {
				want := differences(func(h float64) []float64 { return at(k, h)[k-1] })
				agree(t, fmt.Sprintf("order %d", k), base[k], want, 1e-8)
			}
		})
	}
}

// ⟨w, J·v⟩ = ⟨Jᵀw, v⟩, and the gradient of the former in v is Jᵀw.
func TestPushforwardIsAdjointToPullback(t *testing.T) {
	for _, m := range functions {
		t.Run(m.name, func(t *testing.T) {
			var size int
			{
				var b graph.Builder
				size = b.Shape(m.f(&b, b.Input("x", graph.Type{DType: graph.F64, Shape: m.x}))).Len()
			}
			in := map[string][]float64{"x": numbers(0, m.x.Len()), "v": numbers(1, m.x.Len()), "w": numbers(2, size)}
			got := evaluate(t, in, func(b *graph.Builder) []graph.ID {
				typ := graph.Type{DType: graph.F64, Shape: m.x}
				x, v := b.Input("x", typ), b.Input("v", typ)
				y := m.f(b, x)
				w := b.Input("w", b.Type(y))
				jtw := b.Pullback([]graph.ID{y}, []graph.ID{w}, x)[0]
				forward := b.Sum(b.Mul(w, b.Pushforward(y, x, v)))
				return []graph.ID{forward, b.Sum(b.Mul(jtw, v)), b.Grad(forward, v)[0], jtw}
			})
			agree(t, "product", got[0], got[1], 1e-13)
			agree(t, "gradient in the direction", got[2], got[3], 1e-13)
		})
	}
}

// network is a perceptron with a convolution in front, and the number of its
// linear ops.
func network(b *graph.Builder, x graph.ID) (y graph.ID, linear int) {
	y = b.Elu(b.Conv2D(x, b.Var("conv", graph.T(graph.F64, 3, 2, 3, 3)), graph.NewConv(3, 1, 1)), 1)
	y = b.Reshape(y, graph.D(b.Shape(x).At(0), b.Shape(y).Len()/b.Shape(x).At(0)))
	for i := range 4 {
		w := b.Var(fmt.Sprint("w", i), graph.T(graph.F64, b.Shape(y).At(1), 5))
		y = b.Tanh(b.MatMul(y, w, false, false))
	}
	return y, 5
}

// The dummy is dead code, and what is live of a pushforward has as many
// convolutions and matrix products as the function: it costs one forward pass.
func TestPushforwardCost(t *testing.T) {
	var b graph.Builder
	typ := graph.T(graph.F64, 3, 2, 4, 4)
	x := b.Input("x", typ)
	y, linear := network(&b, x)
	plain := b.NumNodes()
	b.Output("dy", b.Pushforward(y, x, b.Input("v", typ)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	nodes, products := 0, 0
	for i, live := range g.Live() {
		op := g.Nodes()[i].Op
		leaf, ok := op.(graph.Leaf)
		if !live {
			continue
		}
		if ok && leaf.Kind == graph.Dummy {
			t.Errorf("%s is live", leaf)
		}
		nodes++
		switch op.(type) {
		case graph.MatMul, graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW:
			products++
		}
	}
	if products != 2*linear {
		t.Errorf("%d convolutions and matrix products, want the function's %d twice", products, linear)
	}
	t.Logf("%d nodes of the function, %d live with its pushforward, %d in all", plain, nodes, len(g.Nodes()))
}

// crooked pretends to be the identity; its derivative is not linear in the
// cotangent, which no op may be.
type crooked struct{}

func (crooked) Infer(in []graph.Type) ([]graph.Type, error) { return in, nil }
func (crooked) String() string                              { return "crooked" }
func (crooked) VJP(b *graph.Builder, _ graph.Call, dout []graph.ID) []graph.ID {
	return []graph.ID{b.Square(dout[0])}
}

// A dummy that is not dead is an error, not a number.
func TestDummyMustBeDead(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", scalar)
	b.Output("dy", b.Pushforward(b.Apply(crooked{}, x)[0], x, b.Ones(scalar)))
	if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "not linear in the cotangent") {
		t.Errorf("got %v", err)
	}
}

// energies are scalar functions of two tensors, for their Hessians.
func energies(b *graph.Builder, x, y graph.ID) []graph.ID {
	return []graph.ID{
		b.Sum(b.Mul(b.Sin(x), b.Exp(b.MatMul(x, b.MatMul(y, y, true, false), false, false)))),
		b.Sum(b.LogSumExp(b.MatMul(x, y, false, true), 0)),
		b.Add(b.Sum(b.Pow(b.Shift(b.Square(x), 1), 1.5)), b.Square(b.Sum(b.Softplus(y)))), // no mixed part but of sums
	}
}

// Hessian-vector products in two tensors at once, against differences of the
// gradient and against the pushforward of the gradient; they are symmetric, and
// their own derivatives of orders 1 and 2 are right.
func TestHVP(t *testing.T) {
	tx, ty := graph.T(graph.F64, 3, 5), graph.T(graph.F64, 2, 5)
	in := map[string][]float64{}
	for i, name := range []string{"x", "dx", "ex"} {
		in[name] = numbers(i, 15)
	}
	for i, name := range []string{"y", "dy", "ey"} {
		in[name] = numbers(10+i, 10)
	}
	for k := range 3 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			at := func(h float64) [][]float64 {
				here := map[string][]float64{"x": moved(in["x"], in["dx"], h), "y": moved(in["y"], in["dy"], h), "dx": in["dx"], "dy": in["dy"], "ex": in["ex"], "ey": in["ey"]}
				return evaluate(t, here, func(b *graph.Builder) []graph.ID {
					xs := []graph.ID{b.Input("x", tx), b.Input("y", ty)}
					d := []graph.ID{b.Input("dx", tx), b.Input("dy", ty)}
					e := []graph.ID{b.Input("ex", tx), b.Input("ey", ty)}
					dot := func(a, c []graph.ID) graph.ID {
						return b.Add(b.Sum(b.Mul(a[0], c[0])), b.Sum(b.Mul(a[1], c[1])))
					}
					f := energies(b, xs[0], xs[1])[k]
					g, hd, he := b.Grad(f, xs...), b.HVP(f, xs, d), b.HVP(f, xs, e)
					forward := make([]graph.ID, len(xs))
					for i, gi := range g {
						forward[i] = b.Add(b.Pushforward(gi, xs[0], d[0]), b.Pushforward(gi, xs[1], d[1]))
					}
					third := b.Grad(dot(e, hd), xs...) // T(e, d, ·)
					fourth := b.Grad(dot(third, d), xs...)
					return []graph.ID{g[0], g[1], hd[0], hd[1], forward[0], forward[1], dot(e, hd), dot(d, he),
						dot(third, d), dot(fourth, d)}
				})
			}
			base := at(0)
			for i := range 2 {
				agree(t, "product", base[2+i], differences(func(h float64) []float64 { return at(h)[i] }), 1e-8)
				agree(t, "pushforward of the gradient", base[4+i], base[2+i], 1e-12)
			}
			agree(t, "symmetry", base[6], base[7], 1e-12)
			agree(t, "third order", base[8], differences(func(h float64) []float64 { return at(h)[6] }), 1e-8)
			agree(t, "fourth order", base[9], differences(func(h float64) []float64 { return at(h)[8] }), 1e-8)
		})
	}
}

// One pullback of a gradient is no dearer than a pushforward of it, within a
// tenth.
func TestHVPCost(t *testing.T) {
	live := func(forward bool) (nodes int) {
		var b graph.Builder
		typ := graph.T(graph.F64, 3, 2, 4, 4)
		x, v := b.Input("x", typ), b.Input("v", typ)
		y, _ := network(&b, x)
		loss := b.Sum(b.Square(y))
		if forward {
			b.Output("hv", b.Pushforward(b.Grad(loss, x)[0], x, v))
		} else {
			b.Output("hv", b.HVP(loss, []graph.ID{x}, []graph.ID{v})[0])
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range g.Live() {
			if l {
				nodes++
			}
		}
		return nodes
	}
	reverse, forward := live(false), live(true)
	t.Logf("%d live nodes, %d by a pushforward", reverse, forward)
	if reverse > forward+forward/10 {
		t.Errorf("HVP takes %d live nodes, a pushforward of the gradient %d", reverse, forward)
	}
}

// Across ranks, a pushforward is the derivative when every rank moves along its
// own direction, and HVP the product with the Hessian of Σ_r L_r.
func TestForwardAcrossRanks(t *testing.T) {
	xs := [3][2]float64{{0.3, -0.8}, {1.1, 0.4}, {-0.5, 0.9}}
	var b graph.Builder
	x, place := b.Input("x", graph.T(graph.F64, 2)), b.Input("place", graph.T(graph.F64, 2))
	dx := b.Cos(b.Scale(place, 3)) // each rank's own
	mean := b.AllReduce(collective.Mean, "mean", b.Sin(x))[0]
	y := b.Mul(b.Tanh(x), mean)
	loss := b.Sum(b.Mul(b.AllReduce(collective.Sum, "sum", y)[0], b.Square(x)))
	for name, id := range map[string]graph.ID{"y": y, "dx": dx, "dy": b.Pushforward(y, x, dx), "g": b.Grad(loss, x)[0], "hv": b.HVP(loss, []graph.ID{x}, []graph.ID{dx})[0]} {
		b.Output(name, id)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	base := runRanks(t, g, xs, xs)
	at := func(h float64) [3]map[string][]float64 {
		var there [3][2]float64
		for r := range xs {
			copy(there[r][:], moved(xs[r][:], base[r]["dx"], h))
		}
		return runRanks(t, g, there, xs)
	}
	for r := range xs {
		agree(t, fmt.Sprintf("pushforward, rank %d", r), base[r]["dy"], differences(func(h float64) []float64 { return at(h)[r]["y"] }), 1e-9)
		agree(t, fmt.Sprintf("hessian, rank %d", r), base[r]["hv"], differences(func(h float64) []float64 { return at(h)[r]["g"] }), 1e-9)
	}
}

// Derivatives along directions of several types have their own dummies, and leave the caller's
// list of values alone.
func TestForwardOfSeveralTypes(t *testing.T) {
	var b graph.Builder
	for _, d := range []graph.DType{graph.F32, graph.F64} {
		x := b.Input(d.String(), graph.T(d, 3))
		b.Output(d.String()+" forward", b.Pushforward(b.Sin(x), x, x))
		xs := []graph.ID{x, -7}
		b.Output(d.String()+" hvp", b.HVP(b.Sin(x), xs[:1], []graph.ID{x})[0])
		if xs[1] != -7 {
			t.Errorf("the list of values has become %v", xs)
		}
	}
	if _, err := b.Build(); err != nil {
		t.Error(err)
	}
}
