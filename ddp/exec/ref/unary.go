package ref

import (
	"math"

	"ebtrain/ddp/graph"
)

// unary sets y[i] = fn(x[i]).
func unary(op graph.Unary) kernel {
	f := function(op.Fn, op.A())
	return func(in, out []*value) error {
		for k, x := range in[0].f {
			out[0].f[k] = f(x)
		}
		return nil
	}
}

// function is the function fn with parameter a.
func function(fn graph.UnaryFn, a float64) func(x float64) float64 {
	switch fn {
	case graph.Neg:
		return func(x float64) float64 { return -x }
	case graph.Abs:
		return math.Abs
	case graph.Sign:
		return sign
	case graph.Step:
		return func(x float64) float64 { return pick(x > 0, 1, 0) }
	case graph.Relu:
		return func(x float64) float64 { return max(x, 0) }
	case graph.LeakyRelu:
		return func(x float64) float64 { return pick(x > 0, x, a*x) }
	case graph.LeakyStep:
		return func(x float64) float64 { return pick(x > 0, 1, a) }
	case graph.Elu:
		return func(x float64) float64 { return pick(x > 0, x, a*math.Expm1(x)) }
	case graph.EluD:
		return func(x float64) float64 { return pick(x > 0, 1, a*math.Exp(x)) }
	case graph.EluDD:
		return func(x float64) float64 { return pick(x > 0, 0, a*math.Exp(x)) }
	case graph.Softplus:
		return func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	case graph.Sigmoid:
		return sigmoid
	case graph.Tanh:
		return math.Tanh
	case graph.Exp:
		return math.Exp
	case graph.Log:
		return math.Log
	case graph.Sqrt:
		return math.Sqrt
	case graph.Square:
		return func(x float64) float64 { return x * x }
	case graph.Recip:
		return func(x float64) float64 { return 1 / x }
	case graph.PowC:
		return func(x float64) float64 { return math.Pow(x, a) }
	case graph.Scale:
		return func(x float64) float64 { return a * x }
	case graph.Shift:
		return func(x float64) float64 { return x + a }
	case graph.Sin:
		return math.Sin
	case graph.Cos:
		return math.Cos
	case graph.Erf:
		return math.Erf
	}
	panic("ref: no unary function has number " + fn.String())
}

func pick(cond bool, x, y float64) float64 {
	if cond {
		return x
	}
	return y
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // 0, -0 or NaN
}

// sigmoid never takes the exponential of a large positive number.
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}
