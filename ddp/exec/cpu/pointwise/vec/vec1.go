package vec

import (
	"math"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// unaryOf is the loop of a function of one number. Integers have none.
func unaryOf[T array.Float](fn graph.UnaryFn) Unary[T] {
	switch fn {
	case graph.Neg:
		return func(d, x []T, _ T) { negV(d, x) }
	case graph.Abs:
		return func(d, x []T, _ T) { absV(d, x) }
	case graph.Step:
		return func(d, x []T, _ T) { gtVS(d, x, 0) }
	case graph.Relu:
		return func(d, x []T, _ T) { maxVS(d, x, 0) }
	case graph.LeakyRelu:
		return leakyRelu[T]
	case graph.LeakyStep:
		return leakyStep[T]
	case graph.Sqrt:
		return func(d, x []T, _ T) { sqrtV(d, x) }
	case graph.Square:
		return func(d, x []T, _ T) { mulVV(d, x, x) }
	case graph.Recip:
		return func(d, x []T, _ T) { divSV(d, x, 1) }
	case graph.Scale:
		return mulVS[T]
	case graph.Shift:
		return addVS[T]
	}
	return func(d, x []T, a T) { // rare, or dominated by the function itself
		x = x[:len(d)]
		for i := range d {
			d[i] = T(plan.EvalUnary(fn, float64(a), float64(x[i])))
		}
	}
}

func negV[T array.Float](d, x []T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = -x[i]
	}
}

func absV[T array.Float](d, x []T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = abs(x[i])
	}
}

// abs takes the sign away and nothing else, as the assembly does: float64(v) of a subnormal
// float32 is zero where those count as zeros.
func abs[T array.Float](v T) T {
	if f, ok := any(v).(float32); ok {
		return T(math.Float32frombits(math.Float32bits(f) &^ (1 << 31)))
	}
	return T(math.Abs(float64(v)))
}

func sqrtV[T array.Float](d, x []T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = T(math.Sqrt(float64(x[i])))
	}
}

func leakyRelu[T array.Float](d, x []T, a T) {
	x = x[:len(d)]
	for i := range d {
		v := x[i]
		if !(v > 0) {
			v *= a
		}
		d[i] = v
	}
}

func leakyStep[T array.Float](d, x []T, a T) {
	x = x[:len(d)]
	for i := range d {
		v := a
		if x[i] > 0 {
			v = 1
		}
		d[i] = v
	}
}
