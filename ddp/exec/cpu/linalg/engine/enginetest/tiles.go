package enginetest

import (
	"math"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// An engine that works in tiles multiplies sums of a tile's numbers, and lets the
// products that a result does not want cancel. What they leave behind is their
// rounding errors: a few for each tile, in proportion to the norms of what was
// transformed, however few terms the result has. Where a tile is mostly beyond the
// image that is more than the error of a plain sum: one pixel of 16 channels, two
// images, padded to 3×3 results, has weight gradients of two terms, made of tiles
// that hold nine times as many products.

// mixedRoundings is how many roundings of the norm a tile may be off by. Of
// random shapes of up to 9×9 pixels the worst, a weight gradient, was off by 4.
const mixedRoundings = 6

// mixed is the biggest product of the norms of what is transformed together, for
// tiles of 4×4 results anywhere.
func mixed(op engine.ConvOp, p engine.ConvProblem, a, b []float32) float64 {
	const m = 4
	switch op {
	case engine.Forward: // x and w
		return patchNorm(a, p.H, p.W, p.C, (m-1)*p.StrideH+p.KH, (m-1)*p.StrideW+p.KW) * classNorm(b, p.C/p.Groups*p.KH*p.KW, p.O)
	case engine.GradX: // w and dy; a tile is of pixels that meet the same taps
		return patchNorm(b, p.OH, p.OW, p.O, m+(p.KH-1)/p.StrideH, m+(p.KW-1)/p.StrideW) * classNorm(a, p.KH*p.KW, p.C/p.Groups)
	default: // x and dy, one channel of each
		return classNorm(a, 1, p.C) * classNorm(b, 1, p.O)
	}
}

// classNorm is the biggest norm of a class of numbers; i/step mod classes is the
// class of number i.
func classNorm(v []float32, step, classes int) float64 {
	squares, most := make([]float64, classes), 0.0
	for i, x := range v {
		c := i / step % classes
		squares[c] += float64(x) * float64(x)
		most = max(most, squares[c])
	}
	return math.Sqrt(most)
}

// patchNorm is the biggest norm of rows × cols pixels of images (n,h,w,c).
func patchNorm(v []float32, h, w, c, rows, cols int) float64 {
	most := 0.0
	for image := 0; image < len(v); image += h * w * c {
		for i := range h {
			for j := range w {
				sum := 0.0
				for row := i; row < min(i+rows, h); row++ {
					for _, x := range v[image+(row*w+j)*c : image+(row*w+min(j+cols, w))*c] {
						sum += float64(x) * float64(x)
					}
				}
				most = max(most, sum)
			}
		}
	}
	return math.Sqrt(most)
}

// TiledError is the biggest error of an engine's results of a convolution of random
// numbers, for the tolerance that RunTiled has: at most 1.
func TiledError(e engine.Engine, op engine.ConvOp, p engine.ConvProblem) (float64, error) {
	r := convReference(op, p)
	x := newExpectation(r, false)
	x.level(r)
	got, err := RunConv(e, op, p, x.a, x.b)
	if err != nil {
		return 0, err
	}
	worst := 0.0
	for i, v := range got {
		worst = max(worst, math.Abs(float64(v)-x.want[i])/x.tol[i])
	}
	return worst, nil
}
