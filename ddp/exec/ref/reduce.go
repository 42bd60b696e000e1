package ref

import "ebtrain/ddp/graph"

// reduce combines x[at] into y[at with the reduced axes 0], in row-major order.
func reduce[E number](op graph.Reduce) kernel {
	return func(in, out []*value) error {
		x, y := elements[E](in[0]), elements[E](out[0])
		out[0].zero()
		stride := out[0].typ.Shape.Strides().Slice()
		seen, k := make([]bool, len(y)), 0
		walk(in[0].typ.Shape, func(at []int) {
			j := 0
			for a, i := range at {
				if !op.Over(a) {
					j += i * stride[a]
				}
			}
			switch {
			case op.Fn == graph.ReduceSum:
				y[j] += x[k]
			case seen[j]:
				y[j] = max(y[j], x[k])
			default:
				y[j] = x[k]
			}
			seen[j] = true
			k++
		})
		return nil
	}
}
