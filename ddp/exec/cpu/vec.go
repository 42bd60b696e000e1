package cpu

import "ebtrain/ddp/graph"

// float and number are the types that fused groups compute in.
type float interface{ float32 | float64 }

type number interface{ float32 | float64 | int64 }

// The loops below compute one instruction on a block. All slices have the
// length of d; d may be the same memory as an operand.

type (
	vec1[T number]  func(d, x []T, a T)  // d = f(x) with parameter a
	vec2[T number]  func(d, x, y []T)    // d = f(x, y)
	vec2s[T number] func(d, x []T, s T)  // d = f(x, s) or f(s, x)
	vec3[T number]  func(d, c, x, y []T) // d = c ≠ 0 ? x : y
)

// pair is a binary function for each combination of arrays and numbers.
type pair[T number] struct {
	vv vec2[T]
	vs vec2s[T] // f(x, s)
	sv vec2s[T] // f(s, x)
}

func pairs[T number](fn graph.BinaryFn) pair[T] {
	switch fn {
	case graph.Add:
		return pair[T]{addVV[T], addVS[T], addVS[T]}
	case graph.Sub:
		return pair[T]{subVV[T], subVS[T], subSV[T]}
	case graph.Mul:
		return pair[T]{mulVV[T], mulVS[T], mulVS[T]}
	case graph.Div:
		return pair[T]{divVV[T], divVS[T], divSV[T]}
	case graph.Max:
		return pair[T]{maxVV[T], maxVS[T], maxVS[T]}
	case graph.Min:
		return pair[T]{minVV[T], minVS[T], minVS[T]}
	case graph.Greater:
		return pair[T]{gtVV[T], gtVS[T], gtSV[T]}
	case graph.Equal:
		return pair[T]{eqVV[T], eqVS[T], eqVS[T]}
	}
	panic("cpu: unknown binary function " + fn.String())
}

func addVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

func addVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + s
	}
}

func subVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

func subVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] - s
	}
}

func subSV[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = s - x[i]
	}
}

func mulVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] * y[i]
	}
}

func mulVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] * s
	}
}

func divVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] / y[i]
	}
}

func divVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] / s
	}
}

func divSV[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = s / x[i]
	}
}

func maxVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = max(x[i], y[i])
	}
}

func maxVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = max(x[i], s)
	}
}

func minVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = min(x[i], y[i])
	}
}

func minVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = min(x[i], s)
	}
}

func gtVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] > y[i])
	}
}

func gtVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] > s)
	}
}

func gtSV[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](s > x[i])
	}
}

func eqVV[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] == y[i])
	}
}

func eqVS[T number](d, x []T, s T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = truth[T](x[i] == s)
	}
}

func truth[T number](b bool) T {
	var n uint8
	if b {
		n = 1
	}
	return T(n)
}

func selectVVV[T number](d, c, x, y []T) {
	c, x, y = c[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		v := y[i]
		if c[i] != 0 {
			v = x[i]
		}
		d[i] = v
	}
}
