package plan

import (
	"math"

	"ebtrain/ddp/graph"
)

// foldable says whether an op on constants of type d is computed here.
func foldable(op graph.Op, d graph.DType) bool {
	_, cast := op.(graph.Cast)
	return !cast && (d == graph.F32 || d == graph.F64)
}

// fold is op on constants, rounded to d.
func fold(op graph.Op, d graph.DType, x [3]float64) float64 {
	round := func(v float64) float64 {
		if d == graph.F32 {
			return float64(float32(v))
		}
		return v
	}
	for i := range x {
		x[i] = round(x[i])
	}
	switch o := op.(type) {
	case graph.Unary:
		return round(EvalUnary(o.Fn, round(o.A()), x[0]))
	case graph.Binary:
		return round(EvalBinary(o.Fn, x[0], x[1]))
	}
	if x[0] != 0 {
		return x[1]
	}
	return x[2]
}

// EvalUnary is fn(x) with parameter a, in float64.
func EvalUnary(fn graph.UnaryFn, a, x float64) float64 {
	switch fn {
	case graph.Neg:
		return -x
	case graph.Abs:
		return math.Abs(x)
	case graph.Sign:
		switch {
		case x > 0:
			return 1
		case x < 0:
			return -1
		}
		return x // keeps 0, -0 and NaN
	case graph.Step:
		return truth(x > 0)
	case graph.Relu:
		return max(x, 0)
	case graph.LeakyRelu:
		if x > 0 {
			return x
		}
		return a * x
	case graph.LeakyStep:
		if x > 0 {
			return 1
		}
		return a
	case graph.Elu:
		if x > 0 {
			return x
		}
		return a * math.Expm1(x)
	case graph.EluD:
		if x > 0 {
			return 1
		}
		return a * math.Exp(x)
	case graph.EluDD:
		if x > 0 {
			return 0
		}
		return a * math.Exp(x)
	case graph.Softplus:
		return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	case graph.Sigmoid:
		if x >= 0 {
			return 1 / (1 + math.Exp(-x))
		}
		e := math.Exp(x)
		return e / (1 + e)
	case graph.Tanh:
		return math.Tanh(x)
	case graph.Exp:
		return math.Exp(x)
	case graph.Log:
		return math.Log(x)
	case graph.Sqrt:
		return math.Sqrt(x)
	case graph.Square:
		return x * x
	case graph.Recip:
		return 1 / x
	case graph.PowC:
		return math.Pow(x, a)
	case graph.Scale:
		return a * x
	case graph.Shift:
		return x + a
	case graph.Sin:
		return math.Sin(x)
	case graph.Cos:
		return math.Cos(x)
	case graph.Erf:
		return math.Erf(x)
	}
	panic("plan: unknown unary function " + fn.String())
}

// EvalBinary is fn(x, y), in float64.
func EvalBinary(fn graph.BinaryFn, x, y float64) float64 {
	switch fn {
	case graph.Add:
		return x + y
	case graph.Sub:
		return x - y
	case graph.Mul:
		return x * y
	case graph.Div:
		return x / y
	case graph.Max:
		return max(x, y)
	case graph.Min:
		return min(x, y)
	case graph.Greater:
		return truth(x > y)
	case graph.Equal:
		return truth(x == y)
	}
	panic("plan: unknown binary function " + fn.String())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
