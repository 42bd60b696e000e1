package ref

import (
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// constant fills y with one number.
func constant(op graph.Const) kernel {
	return func(_, out []*value) error {
		y, v := out[0], op.Value()
		for k := range y.f {
			y.f[k] = v
		}
		for k := range y.i {
			y.i[k] = int64(math.RoundToEven(v))
		}
		return nil
	}
}

// iota sets y[…, i, …] = i.
func iota(op graph.Iota) kernel {
	return func(_, out []*value) error {
		y, k := out[0], 0
		walk(y.typ.Shape, func(at []int) {
			if i := at[op.Axis]; y.f != nil {
				y.f[k] = float64(i)
			} else {
				y.i[k] = int64(i)
			}
			k++
		})
		return nil
	}
}

// draw fills row r of y with the elements of a philox stream.
func draw(op graph.Draw) kernel {
	return func(in, out []*value) error {
		key, y := in[0].i, out[0]
		rows := y.typ.Shape.At(0)
		if rows == 0 {
			return nil
		}
		n := len(y.f) / rows
		for r := range rows {
			name := philox.Name{Seed: uint64(key[0]), Step: uint32(key[1]), Sample: uint32(key[2] + int64(r)), Purpose: op.Purpose, Sub: op.Sub}
			drawRow(y.f[r*n:][:n], op.Dist, name)
		}
		return nil
	}
}

func drawRow(dst []float64, dist graph.Dist, name philox.Name) {
	switch dist {
	case graph.Normal:
		name.Normal(dst)
	case graph.Uniform:
		name.Uniform(dst)
	case graph.Rademacher:
		for k := range dst {
			dst[k] = 2*float64(name.Uint32(k)&1) - 1
		}
	}
}
