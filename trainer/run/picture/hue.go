package picture

import (
	"image/color"
	"math"
)

// Hue is the i-th of n colours of equal distance, lighter and darker in turn, for curves
// that are told apart.
func Hue(i, n int) color.RGBA {
	h, v := 6*float64(i)/float64(n), 0.85-0.3*float64(i%2)
	part := func(shift float64) uint8 {
		k := math.Mod(shift+h, 6)
		return uint8(255 * v * (1 - max(0, min(k, 4-k, 1))))
	}
	return color.RGBA{part(5), part(3), part(1), 255}
}
