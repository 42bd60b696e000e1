package nn

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// power is one power iteration on w, a matrix with a row for each of u, in plain loops.
func power(w, u []float64) (newU, newV []float64) {
	rows, cols := len(u), len(w)/len(u)
	newV, newU = make([]float64, cols), make([]float64, rows)
	for i := range rows {
		for j := range cols {
			newV[j] += w[i*cols+j] * u[i]
		}
	}
	normalise(newV)
	for i := range rows {
		newU[i] = dot(w[i*cols:(i+1)*cols], newV)
	}
	normalise(newU)
	return newU, newV
}

func normalise(x []float64) {
	norm := math.Sqrt(dot(x, x))
	for i := range x {
		x[i] /= norm
	}
}

// quotient is W/(uᵀWv).
func quotient(w, u, v []float64) []float64 {
	sigma := 0.0
	for i := range u {
		sigma += u[i] * dot(w[i*len(v):(i+1)*len(v)], v)
	}
	y := make([]float64, len(w))
	for i := range w {
		y[i] = w[i] / sigma
	}
	return y
}

// The shape of a conv weight: flattened to 6×18.
var spectralShape = graph.D(6, 2, 3, 3)

const spectralRows, spectralCols = 6, 18

// spectralWeight is the weight over its norm.
func spectralWeight(c *Context) graph.ID { return c.over(c.spectralOf(spectralShape, nil)) }

// spectralVars holds a weight and vectors that one iteration moves.
func spectralVars(t *testing.T) (vars exec.Vars, w, u, v []float64) {
	vars = ddptest.NewVars()
	w, u, v = ddptest.Noise(1, spectralRows*spectralCols), ddptest.Noise(2, spectralRows), ddptest.Noise(3, spectralCols)
	normalise(u)
	normalise(v)
	set(t, vars, "weight_orig", spectralShape, w)
	set(t, vars, "weight_u", graph.D(spectralRows), u)
	set(t, vars, "weight_v", graph.D(spectralCols), v)
	return vars, w, u, v
}

// After many iterations σ̂ is the largest singular value.
func TestSpectralNormIsTheLargestSingularValue(t *testing.T) {
	vars, w, _, _ := spectralVars(t)
	for range 20 {
		c := context64(Train)
		for range 50 {
			spectralWeight(c)
		}
		run(t, c, vars, nil)
	}
	c := context64(Eval)
	c.Output("y", spectralWeight(c))
	got := run(t, c, vars, nil)["y"]

	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(spectralRows, spectralCols, w), mat.SVDNone) {
		t.Fatal("no singular values")
	}
	sigma := svd.Values(nil)[0]
	want := make([]float64, len(w))
	for i := range w {
		want[i] = w[i] / sigma
	}
	near(t, "W/σ", got, want, 1e-12)
}

// One forward in each mode: which vectors it divides by, which it keeps, and
// the derivative with those vectors fixed.
func TestSpectralWeight(t *testing.T) {
	a := ddptest.Noise(4, spectralRows*spectralCols)
	for _, tt := range []struct {
		name   string
		mode   Mode
		frozen bool
	}{{"train", Train, false}, {"train, frozen", Train, true}, {"batch statistics", BatchStats, false}, {"eval", Eval, false}} {
		t.Run(tt.name, func(t *testing.T) {
			vars, w, u, v := spectralVars(t)
			c := context64(tt.mode)
			c.Frozen = tt.frozen
			y := spectralWeight(c)
			c.Output("y", y)
			loss := c.Sum(c.Mul(y, c.Input("a", graph.Type{DType: graph.F64, Shape: spectralShape})))
			c.Output("g", c.Grad(loss, c.now["weight_orig"])[0])
			out := run(t, c, vars, values{"a": a})

			if tt.mode == Train {
				u, v = power(w, u)
			}
			near(t, "W/σ̂", out["y"], quotient(w, u, v), 1e-13)
			near(t, "u", numbers(t, vars, "weight_u"), u, 1e-14)
			near(t, "v", numbers(t, vars, "weight_v"), v, 1e-14)
			want := slope(func(w []float64) float64 { return dot(a, quotient(w, u, v)) }, w)
			if tt.frozen {
				want = make([]float64, len(w))
			}
			near(t, "gradient", out["g"], want, 1e-7)
		})
	}
}

// Two forwards before one backward: two iterations, and each pass is
// differentiated with the vectors that it used (compare pytorch/pytorch#55368).
func TestSpectralWeightTwice(t *testing.T) {
	vars, w, u0, _ := spectralVars(t)
	a, b := ddptest.Noise(4, len(w)), ddptest.Noise(5, len(w))
	c := context64(Train)
	full := graph.Type{DType: graph.F64, Shape: spectralShape}
	y1, y2 := spectralWeight(c), spectralWeight(c)
	loss := c.Add(c.Sum(c.Mul(y1, c.Input("a", full))), c.Sum(c.Square(c.Mul(y2, c.Input("b", full)))))
	c.Output("y1", y1)
	c.Output("y2", y2)
	c.Output("g", c.Grad(loss, c.now["weight_orig"])[0])
	out := run(t, c, vars, values{"a": a, "b": b})

	u1, v1 := power(w, u0)
	u2, v2 := power(w, u1)
	near(t, "first", out["y1"], quotient(w, u1, v1), 1e-13)
	near(t, "second", out["y2"], quotient(w, u2, v2), 1e-13)
	near(t, "u", numbers(t, vars, "weight_u"), u2, 1e-14)
	near(t, "v", numbers(t, vars, "weight_v"), v2, 1e-14)
	want := slope(func(w []float64) float64 {
		sum := dot(a, quotient(w, u1, v1))
		for i, y := range quotient(w, u2, v2) {
			sum += y * b[i] * y * b[i]
		}
		return sum
	}, w)
	near(t, "gradient", out["g"], want, 1e-6)
}

// A stepped weight is iterated as it is after the step.
func TestSpectralWeightAfterStep(t *testing.T) {
	vars, w, u, _ := spectralVars(t)
	step := ddptest.Noise(6, len(w))
	c := context64(Train)
	full := graph.Type{DType: graph.F64, Shape: spectralShape}
	spectralWeight(c)
	c.Set("weight_orig", c.Add(c.now["weight_orig"], c.Input("step", full)))
	c.Output("y", spectralWeight(c))
	out := run(t, c, vars, values{"step": step})

	u, _ = power(w, u)
	for i := range w {
		w[i] += step[i]
	}
	u, v := power(w, u)
	near(t, "W/σ̂", out["y"], quotient(w, u, v), 1e-13)
	near(t, "variable", numbers(t, vars, "weight_orig"), w, 0)
}

// A zero weight has no direction: the vectors become 0, not NaN.
func TestSpectralNormOfZero(t *testing.T) {
	vars, _, _, _ := spectralVars(t)
	set(t, vars, "weight_orig", spectralShape, make([]float64, spectralRows*spectralCols))
	c := context64(Train)
	spectralWeight(c)
	run(t, c, vars, nil)
	near(t, "u", numbers(t, vars, "weight_u"), make([]float64, spectralRows), 0)
}

// However small a weight is, its vectors have length 1 and W/σ̂ is the same.
func TestSpectralNormOfSmallWeights(t *testing.T) {
	vars, w, u, _ := spectralVars(t)
	u, v := power(w, u)
	want := quotient(w, u, v)
	for i := range w {
		w[i] *= 1e-9
	}
	set(t, vars, "weight_orig", spectralShape, w)
	c := context64(Train)
	c.Output("y", spectralWeight(c))
	near(t, "W/σ̂", run(t, c, vars, nil)["y"], want, 1e-12)
	near(t, "u", numbers(t, vars, "weight_u"), u, 1e-12)
	near(t, "v", numbers(t, vars, "weight_v"), v, 1e-12)
}

// A layer is its product with W/σ̂, and so are its gradients, on either side of the
// choice of where to divide; and with many weights for each pixel, nothing of the
// size of the weight is divided.
func TestSpectralLayer(t *testing.T) {
	for name, tt := range map[string]struct {
		geometry
		divides bool // the weight
	}{
		"few weights":           {geometry{n: 2, in: 3, out: 2, h: 5, w: 4, k: 3, stride: 1, pad: 1}, true},
		"as many":               {geometry{n: 1, in: 8, out: 2, h: 2, w: 2, k: 1, stride: 1}, true},
		"one more channel":      {geometry{n: 3, in: 9, out: 2, h: 2, w: 2, k: 1, stride: 1}, false},
		"many, for some pixels": {geometry{n: 2, in: 15, out: 2, h: 2, w: 2, k: 3, stride: 1, pad: 1}, false},
		"linear, few weights":   {geometry{n: 2, in: 2, out: 3, h: 1, w: 1, k: 1, stride: 1}, true},
		"linear, many weights":  {geometry{n: 2, in: 3, out: 3, h: 1, w: 1, k: 1, stride: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, vars := context64(Train), ddptest.NewVars()
			x, y := tt.spectral(c, strings.HasPrefix(name, "linear"))
			weight := graph.Type{DType: graph.F64, Shape: c.Shape(c.now["l.weight_orig"])}
			grads := c.Grad(c.Sum(c.Mul(y, c.Input("a", c.Type(y)))), x, c.now["l.weight_orig"])
			c.Output("y", y)
			c.Output("dx", grads[0])
			c.Output("dw", grads[1])
			g := commit(t, c)
			if got := divides(g, weight.Shape); got != tt.divides {
				t.Errorf("divides something of the weight's shape: %v, want %v", got, tt.divides)
			}

			w, u := ddptest.Noise(1, weight.Shape.Len()), ddptest.Noise(2, tt.out)
			set(t, vars, "l.weight_orig", weight.Shape, w)
			set(t, vars, "l.weight_u", graph.D(tt.out), u)
			in, a := ddptest.Noise(3, c.Shape(x).Len()), ddptest.Noise(4, c.Shape(y).Len())
			out := runGraph(t, c, g, vars, values{"x": in, "a": a})

			u, v := power(w, u)
			product := func(x, w []float64) []float64 {
				return tt.direct(x, quotient(w, u, v), numbers(t, vars, "l.bias"))
			}
			near(t, "y", out["y"], product(in, w), 1e-13)
			near(t, "dx", out["dx"], slope(func(x []float64) float64 { return dot(a, product(x, w)) }, in), 1e-7)
			near(t, "dw", out["dw"], slope(func(w []float64) float64 { return dot(a, product(in, w)) }, w), 1e-7)
		})
	}
}

// spectral is a layer with spectral norm and its input.
func (g geometry) spectral(c *Context, linear bool) (x, y graph.ID) {
	if linear {
		x = c.Input("x", graph.T(graph.F64, g.n, g.in))
		return x, Linear{Name: "l", In: g.in, Out: g.out, Spectral: true}.Apply(c, x)
	}
	x = c.Input("x", graph.T(graph.F64, g.n, g.in, g.h, g.w))
	return x, Conv2d{Name: "l", In: g.in, Out: g.out, Kernel: g.k, Stride: g.stride, Pad: g.pad, Spectral: true}.Apply(c, x)
}

// divides says whether g has products of a reciprocal, repeated to a shape.
func divides(g *graph.Graph, s graph.Shape) bool {
	return slices.ContainsFunc(g.Nodes(), func(n graph.Node) bool {
		if _, ok := n.Op.(graph.Broadcast); !ok || g.Type(n.Out[0]).Shape != s {
			return false
		}
		from := g.Nodes()[g.NodeOf(n.In[0])]
		if _, ok := from.Op.(graph.Reshape); ok {
			from = g.Nodes()[g.NodeOf(from.In[0])]
		}
		op, ok := from.Op.(graph.Unary)
		return ok && op.Fn == graph.Recip
	})
}
