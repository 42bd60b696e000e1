package ref

import (
	"math"

	"ebtrain/ddp/graph"
)

// upsample sets y[pixel] = Σ weight·x[source].
func upsample(op graph.Upsample2D) kernel {
	return func(in, out []*value) error {
		x, y := in[0], out[0]
		y.zero()
		planes(x.typ.Shape, y.typ.Shape, func(xo, yo int) {
			shares(op, x.typ.Shape.At(2), x.typ.Shape.At(3), func(small, large int, weight float64) {
				y.f[yo+large] += weight * x.f[xo+small]
			})
		})
		return nil
	}
}

// upsampleT sets x[source] = Σ weight·y[pixel].
func upsampleT(op graph.Upsample2DT) kernel {
	return func(in, out []*value) error {
		y, x := in[0], out[0]
		x.zero()
		planes(x.typ.Shape, y.typ.Shape, func(xo, yo int) {
			shares(graph.Upsample2D(op), x.typ.Shape.At(2), x.typ.Shape.At(3), func(small, large int, weight float64) {
				x.f[xo+small] += weight * y.f[yo+large]
			})
		})
		return nil
	}
}

// shares calls f for each pixel of the small h×w plane that a pixel of the
// large one takes a share from.
func shares(op graph.Upsample2D, h, w int, f func(small, large int, weight float64)) {
	for i := range h * op.Scale {
		for j := range w * op.Scale {
			for _, r := range sources(op, i, h) {
				for _, s := range sources(op, j, w) {
					f(r.at*w+s.at, i*w*op.Scale+j, r.weight*s.weight)
				}
			}
		}
	}
}

// share is a weight on an index along one axis.
type share struct {
	at     int
	weight float64
}

// sources are the small indices, 0 … n−1, that the large index i takes from,
// none with weight 0: what is not taken from may be NaN. Bilinear: the centre of
// i lies at (i+½)/scale − ½, clamped at 0, between two neighbours; beyond the
// last it is the last.
func sources(op graph.Upsample2D, i, n int) []share {
	if op.Mode == graph.Nearest {
		return []share{{i / op.Scale, 1}}
	}
	at := max((float64(i)+0.5)/float64(op.Scale)-0.5, 0)
	lo := int(math.Floor(at))
	frac := at - float64(lo)
	if lo+1 == n || frac == 0 {
		return []share{{lo, 1}}
	}
	return []share{{lo, 1 - frac}, {lo + 1, frac}}
}
