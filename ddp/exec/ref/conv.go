package ref

import "ebtrain/ddp/graph"

// meets calls f(xi, wi, yi) for each term y[yi]·x[xi]·w[wi] of the trilinear
// form of a convolution; the arguments are offsets.
func meets(c graph.Conv, x, w, y graph.Shape, f func(xi, wi, yi int)) {
	images, channels, outs, perGroup := x.At(0), x.At(1), w.At(0), w.At(1)
	xPlane, yPlane, taps, outsPerGroup := x.At(2)*x.At(3), y.At(2)*y.At(3), c.KH*c.KW, outs/c.Groups
	windows(c.Window, x.At(2), x.At(3), func(pixel, tap, place int) {
		for n := range images {
			for o := range outs {
				first := n*channels + o/outsPerGroup*perGroup
				for ch := range perGroup {
					f((first+ch)*xPlane+pixel, (o*perGroup+ch)*taps+tap, (n*outs+o)*yPlane+place)
				}
			}
		}
	})
}

// windows calls f(pixel, tap, place) for each pixel of an h×w plane under tap
// p·KW+q of the window at place i·OW+j.
func windows(win graph.Window, h, w int, f func(pixel, tap, place int)) {
	oh, ow := win.Out(h, w)
	for i := range oh {
		for j := range ow {
			for p := range win.KH {
				for q := range win.KW {
					r, s := i*win.StrideH+p*win.DilH-win.PadT, j*win.StrideW+q*win.DilW-win.PadL
					if r >= 0 && r < h && s >= 0 && s < w {
						f(r*w+s, p*win.KW+q, i*ow+j)
					}
				}
			}
		}
	}
}

// conv2D sets y[yi] = Σ x[xi]·w[wi].
func conv2D(op graph.Conv2D) kernel {
	return func(in, out []*value) error {
		x, w, y := in[0], in[1], out[0]
		y.zero()
		meets(op.Conv, x.typ.Shape, w.typ.Shape, y.typ.Shape, func(xi, wi, yi int) { y.f[yi] += x.f[xi] * w.f[wi] })
		return nil
	}
}

// conv2DGradX sets x[xi] = Σ w[wi]·y[yi].
func conv2DGradX(op graph.Conv2DGradX) kernel {
	return func(in, out []*value) error {
		w, y, x := in[0], in[1], out[0]
		x.zero()
		meets(op.Conv, x.typ.Shape, w.typ.Shape, y.typ.Shape, func(xi, wi, yi int) { x.f[xi] += w.f[wi] * y.f[yi] })
		return nil
	}
}

// conv2DGradW sets w[wi] = Σ x[xi]·y[yi].
func conv2DGradW(op graph.Conv2DGradW) kernel {
	return func(in, out []*value) error {
		x, y, w := in[0], in[1], out[0]
		w.zero()
		meets(op.Conv, x.typ.Shape, w.typ.Shape, y.typ.Shape, func(xi, wi, yi int) { w.f[wi] += x.f[xi] * y.f[yi] })
		return nil
	}
}
