package vec

import (
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/graph"
)

// The loops below compute one instruction on a block. All slices have the
// length of d; d may be the same memory as an operand.

type (
	Unary[T array.Number]        func(d, x []T, a T)  // d = f(x) with parameter a
	Binary[T array.Number]       func(d, x, y []T)    // d = f(x, y)
	BinaryNumber[T array.Number] func(d, x []T, s T)  // d = f(x, s) or f(s, x)
	Select[T array.Number]       func(d, c, x, y []T) // d = c ≠ 0 ? x : y
)

// Pair is a binary function for each combination of arrays and numbers.
type Pair[T array.Number] struct {
	VV Binary[T]
	VS BinaryNumber[T] // f(x, s)
	SV BinaryNumber[T] // f(s, x)
}

func binaryOf[T array.Number](fn graph.BinaryFn) Pair[T] {
	switch fn {
	case graph.Add:
		return Pair[T]{addVV[T], addVS[T], addVS[T]}
	case graph.Sub:
		return Pair[T]{subVV[T], subVS[T], subSV[T]}
	case graph.Mul:
		return Pair[T]{mulVV[T], mulVS[T], mulVS[T]}
	case graph.Div:
		return Pair[T]{divVV[T], divVS[T], divSV[T]}
	case graph.Max:
		return Pair[T]{maxVV[T], maxVS[T], maxVS[T]}
	case graph.Min:
		return Pair[T]{minVV[T], minVS[T], minVS[T]}
	case graph.Greater:
		return Pair[T]{gtVV[T], gtVS[T], gtSV[T]}
	case graph.Equal:
		return Pair[T]{eqVV[T], eqVS[T], eqVS[T]}
	}
	panic("cpu: unknown binary function " + fn.String())
}

func addVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func addVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + s
	}
}

func subVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

func subVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] - s
	}
}

func subSV[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = s - x[i]
	}
}

func mulVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func mulVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] * s
	}
}

func divVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] / y[i]
	}
}

func divVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] / s
	}
}

func divSV[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = s / x[i]
	}
}

func maxVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func maxVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = max(x[i], s)
	}
}

func minVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func minVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = min(x[i], s)
	}
}

func gtVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] > y[i])
	}
}

func gtVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] > s)
	}
}

func gtSV[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](s > x[i])
	}
}

func eqVV[T array.Number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] == y[i])
	}
}

func eqVS[T array.Number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] == s)
	}
}

func truth[T array.Number](b bool) T {
	var n uint8
	if b {
		n = 1
	}
	return T(n)
}

func selectVVV[T array.Number](d, c, x, y []T) {
	c, x, y = c[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		v := y[i]
		if c[i] != 0 {
			v = x[i]
		}
		d[i] = v
	}
}
