package picture

import (
	"image"
	"image/draw"
	"math"
)

// Around is the region that holds all samples (N, 2), pairs (x, y) of finite
// numbers, and margin times its width and height more on each side. Where they do
// not differ it is 1 wide; without any it is the unit square.
func Around(samples []float32, margin float64) Region {
	x0, x1 := extent(samples, 0, margin)
	y0, y1 := extent(samples, 1, margin)
	return Region{x0, x1, y0, y1}
}

// extent is the range of one coordinate of the samples that have both.
func extent(samples []float32, axis int, margin float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i := 0; i+1 < len(samples); i += 2 {
		if finite(samples[i]) && finite(samples[i+1]) {
			v := float64(samples[i+axis])
			low, high = min(low, v), max(high, v)
		}
	}
	switch spread := margin * (high - low); {
	case low > high:
		return 0, 1
	case low == high:
		half := max(0.5, math.Abs(low)*1e-6)
		return low - half, high + half
	default:
		return low - spread, high + spread
	}
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// Beside is two pictures side by side, the tops at one height, on white.
func Beside(left, right image.Image) image.Image {
	a, b := left.Bounds(), right.Bounds()
	canvas := image.NewNRGBA(image.Rect(0, 0, a.Dx()+b.Dx(), max(a.Dy(), b.Dy())))
	draw.Draw(canvas, canvas.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(canvas, image.Rectangle{Max: a.Size()}, left, a.Min, draw.Src)
	draw.Draw(canvas, image.Rectangle{Min: image.Pt(a.Dx(), 0), Max: image.Pt(a.Dx()+b.Dx(), b.Dy())}, right, b.Min, draw.Src)
	return canvas
}
