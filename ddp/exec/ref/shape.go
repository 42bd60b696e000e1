package ref

import (
	"math"

	"ebtrain/ddp/graph"
)

// same copies x to y.
func same(in, out []*value) error {
	copy(out[0].f, in[0].f)
	copy(out[0].i, in[0].i)
	return nil
}

// cast copies x to y, which has another type; floats become the nearest integer.
func cast(in, out []*value) error {
	x, y := in[0], out[0]
	fromFloat, toFloat := x.typ.DType.IsFloat(), y.typ.DType.IsFloat()
	switch {
	case fromFloat && !toFloat:
		for k, v := range x.f {
			y.i[k] = int64(math.RoundToEven(v))
		}
	case !fromFloat && toFloat:
		for k, v := range x.i {
			y.f[k] = float64(v)
		}
	default:
		return same(in, out)
	}
	return nil
}

// broadcast sets y[at] = x[at, or 0 on the axes where x has extent 1].
func broadcast(in, out []*value) error {
	x := in[0].typ.Shape
	stride := x.Strides().Slice()
	take(out[0], in[0], func(at []int) int {
		j := 0
		for a, i := range at {
			if x.At(a) != 1 {
				j += i * stride[a]
			}
		}
		return j
	})
	return nil
}

// transpose sets y[at] = x[to], to[perm[a]] = at[a].
func transpose(op graph.Transpose) kernel {
	return func(in, out []*value) error {
		stride, perm := in[0].typ.Shape.Strides().Slice(), op.Perm.Slice()
		take(out[0], in[0], func(at []int) int {
			j := 0
			for a, i := range at {
				j += i * stride[perm[a]]
			}
			return j
		})
		return nil
	}
}

// slice sets y[at] = x[start + at·step].
func slice(op graph.Slice) kernel {
	return func(in, out []*value) error {
		stride := in[0].typ.Shape.Strides().Slice()
		take(out[0], in[0], func(at []int) int {
			j := 0
			for a, i := range at {
				j += (op.Start.At(a) + i*op.Step.At(a)) * stride[a]
			}
			return j
		})
		return nil
	}
}

// pad sets y[lo + at·(gap+1)] = x[at], and 0 elsewhere.
func pad(op graph.Pad) kernel {
	return func(in, out []*value) error {
		out[0].zero()
		stride := out[0].typ.Shape.Strides().Slice()
		put(out[0], in[0], func(at []int) int {
			j := 0
			for a, i := range at {
				j += (op.Lo.At(a) + i*(op.Gap.At(a)+1)) * stride[a]
			}
			return j
		})
		return nil
	}
}

// concat sets y[at + start of x on the axis] = x[at], for each x.
func concat(op graph.Concat) kernel {
	return func(in, out []*value) error {
		stride, start := out[0].typ.Shape.Strides().Slice(), 0
		for _, x := range in {
			put(out[0], x, func(at []int) int {
				j := start * stride[op.Axis]
				for a, i := range at {
					j += i * stride[a]
				}
				return j
			})
			start += x.typ.Shape.At(op.Axis)
		}
		return nil
	}
}
