package ref

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
)

// planes calls f(xo, yo) with the offsets of each channel of two image tensors.
func planes(x, y graph.Shape, f func(xo, yo int)) {
	xPlane, yPlane := x.At(2)*x.At(3), y.At(2)*y.At(3)
	for p := range x.At(0) * x.At(1) {
		f(p*xPlane, p*yPlane)
	}
}

// sumPool adds the pixels of each window.
func sumPool(op graph.SumPool2D) kernel {
	return func(in, out []*value) error {
		x, y := in[0], out[0]
		y.zero()
		planes(x.typ.Shape, y.typ.Shape, func(xo, yo int) {
			windows(op.Window, x.typ.Shape.At(2), x.typ.Shape.At(3), func(pixel, _, place int) {
				y.f[yo+place] += x.f[xo+pixel]
			})
		})
		return nil
	}
}

// sumUnpool adds each element to the pixels of its window.
func sumUnpool(op graph.SumUnpool2D) kernel {
	return func(in, out []*value) error {
		y, x := in[0], out[0]
		x.zero()
		planes(x.typ.Shape, y.typ.Shape, func(xo, yo int) {
			windows(op.Window, op.H, op.W, func(pixel, _, place int) {
				x.f[xo+pixel] += y.f[yo+place]
			})
		})
		return nil
	}
}

// maxPool finds the first maximum of each window, or its first NaN; every window has a pixel.
func maxPool(op graph.MaxPool2D) kernel {
	return func(in, out []*value) error {
		x, y, idx := in[0], out[0], out[1]
		for k := range idx.i {
			idx.i[k] = -1
		}
		planes(x.typ.Shape, y.typ.Shape, func(xo, yo int) {
			windows(op.Window, x.typ.Shape.At(2), x.typ.Shape.At(3), func(pixel, _, place int) {
				k, v := yo+place, x.f[xo+pixel]
				if idx.i[k] < 0 || v > y.f[k] || math.IsNaN(v) && !math.IsNaN(y.f[k]) {
					y.f[k], idx.i[k] = v, int64(pixel)
				}
			})
		})
		return nil
	}
}

// planeGather sets y[n,c,k] = x[n,c,idx[n,c,k]], planes flat.
func planeGather[E number](in, out []*value) error {
	x, y := elements[E](in[0]), elements[E](out[0])
	return places(in[1], in[0].typ.Shape, func(pixel, k int) { y[k] = x[pixel] })
}

// planeScatter sets y[n,c,idx[n,c,k]] = Σ d[n,c,k], planes flat.
func planeScatter[E number](in, out []*value) error {
	out[0].zero()
	d, y := elements[E](in[0]), elements[E](out[0])
	return places(in[1], out[0].typ.Shape, func(pixel, k int) { y[pixel] += d[k] })
}

// places calls f(offset in the image, offset in idx) for each index.
func places(idx *value, image graph.Shape, f func(pixel, k int)) error {
	n, size := idx.typ.Shape.At(2)*idx.typ.Shape.At(3), image.At(2)*image.At(3)
	for k, i := range idx.i {
		if i < 0 || i >= int64(size) {
			return fmt.Errorf("index %d at %d is outside a plane of %d pixels", i, k, size)
		}
		f(k/n*size+int(i), k)
	}
	return nil
}
