package graph_test

import (
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
)

// softmax is eˣ/Σeˣ of a row, and the logarithm of the sum, by loops.
func softmax(row []float64) (p []float64, lse float64) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range row {
		most = max(most, v)
	}
	for _, v := range row {
		sum += math.Exp(v - most)
	}
	for _, v := range row {
		p = append(p, math.Exp(v-most)/sum)
	}
	return p, most + math.Log(sum)
}

// Rows of numbers far apart, huge, tied, and −Inf among others: the value, the
// softmax as first derivative, and diag(p) − ppᵀ times a direction as second.
func TestLogSumExp(t *testing.T) {
	inf := math.Inf(1)
	rows := [][]float64{{0.3, -1.2, 2, 0.7, 0}, {1000, 1001, 999, -1000, 0}, {-1e300, -1e300, -1e308, -1e300, -inf}, {5, 5, 5, 5, 5}, {-inf, 1, -inf, 2, 3}, {-800, -900, -inf, -801, -inf}}
	direction := []float64{0.5, -1, 2, 0.25, -0.75}
	for _, row := range rows {
		in := map[string][]float64{"x": row, "v": direction}
		got := evaluate(t, in, func(b *graph.Builder) []graph.ID {
			x, v := b.Input("x", graph.T(graph.F64, 1, 5)), b.Input("v", graph.T(graph.F64, 1, 5))
			y := b.LogSumExp(x, 1)
			p := b.Grad(y, x)[0]
			second := b.Grad(b.Sum(b.Mul(p, v)), x)[0]
			return []graph.ID{y, p, second, b.Grad(b.Sum(b.Mul(second, v)), x)[0]}
		})
		p, lse := softmax(row)
		mean, square := 0.0, 0.0
		for i, v := range direction {
			mean += p[i] * v
			square += p[i] * v * v
		}
		second, third := make([]float64, 5), make([]float64, 5)
		for i, v := range direction {
			second[i] = p[i] * (v - mean)
			third[i] = p[i] * (v*v - 2*mean*v - square + 2*mean*mean)
		}
		agree(t, "value", got[0], []float64{lse}, 1e-14)
		agree(t, "softmax", got[1], p, 1e-14)
		agree(t, "second order", got[2], second, 1e-14)
		agree(t, "third order", got[3], third, 1e-14)
	}
}

// Axes are removed, as by Sum; without any, all are.
func TestLogSumExpAxes(t *testing.T) {
	x := numbers(5, 3*5*7)
	got := evaluate(t, map[string][]float64{"x": x}, func(b *graph.Builder) []graph.ID {
		x := b.Input("x", graph.T(graph.F64, 3, 5, 7))
		if s := b.Shape(b.LogSumExp(x, 2, 0)); s != graph.D(5) {
			t.Errorf("axes 2 and 0 of [3,5,7] leave %v", s)
		}
		if s := b.Shape(b.LogSumExp(x)); s != graph.D() {
			t.Errorf("all axes leave %v", s)
		}
		return []graph.ID{b.LogSumExp(x, 2, 0), b.LogSumExp(x)}
	})
	var want []float64
	for j := range 5 {
		var row []float64
		for i := range 3 {
			row = append(row, x[35*i+7*j:35*i+7*j+7]...)
		}
		_, lse := softmax(row)
		want = append(want, lse)
	}
	_, all := softmax(x)
	agree(t, "axes 0 and 2", got[0], want, 1e-14)
	agree(t, "all", got[1], []float64{all}, 1e-14)
}

// What has no ordinary value: nothing but −Inf, +Inf, and what is not a number.
func TestLogSumExpLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		row  [3]float64
		want float64
	}{
		{[3]float64{-inf, -inf, -inf}, -inf},
		{[3]float64{inf, 0, -inf}, inf},
		{[3]float64{inf, inf, 1}, inf},
		{[3]float64{0, nan, -inf}, nan},
		{[3]float64{inf, nan, 0}, nan},
		{[3]float64{3e38, -inf, 3e38}, 3e38},
		{[3]float64{-3e38, -inf, -3e38}, -3e38},
	} {
		for _, d := range []graph.DType{graph.F32, graph.F64} {
			got := evaluate(t, map[string][]float64{"x": c.row[:]}, func(b *graph.Builder) []graph.ID {
				return []graph.ID{b.LogSumExp(b.Input("x", graph.T(d, 3)), 0)}
			})[0][0]
			if got != c.want && !(math.Abs(got/c.want-1) <= 1e-7) && !(math.IsNaN(got) && math.IsNaN(c.want)) || math.IsNaN(got) != math.IsNaN(c.want) {
				t.Errorf("%v of %v: got %v, want %v", d, c.row, got, c.want)
			}
		}
	}
}

// The limits are those of the type: the largest number of each is its own logarithm.
func TestLogSumExpOfLargest(t *testing.T) {
	inf := math.Inf(1)
	for d, most := range map[graph.DType]float64{graph.F64: math.MaxFloat64, graph.F32: math.MaxFloat32, graph.BF16: 0x1.FEp127} {
		for _, c := range []struct {
			row  [2]float64
			want float64
		}{{[2]float64{-inf, -inf}, -inf}, {[2]float64{most, -inf}, most}, {[2]float64{-most, -inf}, -most}, {[2]float64{inf, 1}, inf}} {
			got := evaluate(t, map[string][]float64{"x": c.row[:]}, func(b *graph.Builder) []graph.ID {
				return []graph.ID{b.LogSumExp(b.Input("x", graph.T(d, 2)), 0)}
			})[0][0]
			if got != c.want {
				t.Errorf("%v of %v: got %v, want %v", d, c.row, got, c.want)
			}
		}
	}
}

func TestForwardErrors(t *testing.T) {
	for _, c := range []struct {
		name, want string
		f          func(b *graph.Builder, x, y graph.ID)
	}{
		{"log-sum-exp of nothing", "empty", func(b *graph.Builder, _, _ graph.ID) { b.LogSumExp(b.Zeros(graph.T(graph.F64, 3, 0)), 1) }},
		{"log-sum-exp along no axis", "axis 2", func(b *graph.Builder, x, _ graph.ID) { b.LogSumExp(x, 2) }},
		{"log-sum-exp of integers", "floating-point", func(b *graph.Builder, _, _ graph.ID) { b.LogSumExp(b.Iota(graph.T(graph.I64, 3), 0)) }},
		{"a direction of another type", "pushforward: direction 0 is f64[2], want f64[3]", func(b *graph.Builder, x, y graph.ID) { b.Pushforward(y, x, y) }},
		{"no direction", "pushforward along: not a value", func(b *graph.Builder, x, y graph.ID) { b.Pushforward(y, x, 0) }},
		{"of no value", "pushforward of: not a value", func(b *graph.Builder, x, _ graph.ID) { b.Pushforward(0, x, x) }},
		{"too few directions", "hessian-vector product: 2 values and 1 directions", func(b *graph.Builder, x, y graph.ID) { b.HVP(y, []graph.ID{x, y}, []graph.ID{x}) }},
		{"too many directions", "hessian-vector product: 1 values and 2 directions", func(b *graph.Builder, x, y graph.ID) { b.HVP(y, []graph.ID{x}, []graph.ID{x, x}) }},
		{"second direction of another type", "hessian-vector product: direction 1 is f64[3], want f64[2]", func(b *graph.Builder, x, y graph.ID) {
			b.HVP(y, []graph.ID{x, y}, []graph.ID{x, x})
		}},
		{"hessian along no value", "hessian-vector product along: not a value", func(b *graph.Builder, x, y graph.ID) { b.HVP(y, []graph.ID{x}, []graph.ID{0}) }},
		{"hessian of no value", "hessian-vector product of: not a value", func(b *graph.Builder, x, _ graph.ID) { b.HVP(0, []graph.ID{x}, []graph.ID{x}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b graph.Builder
			c.f(&b, b.Input("x", graph.T(graph.F64, 3)), b.Input("y", graph.T(graph.F64, 2)))
			if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
