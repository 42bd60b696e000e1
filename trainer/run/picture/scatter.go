package picture

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"
)

// Scatter is samples (N, 2), pairs (x, y), as dots; where more lie on one another
// it is darker. Above it stands how many there are of what they are called, and how
// many of them are not shown: outside the region, or no numbers.
func Scatter(samples []float32, called string, r Region) (image.Image, error) {
	if len(samples) == 0 || len(samples)%2 != 0 {
		return nil, fmt.Errorf("picture: %d numbers, expected pairs, at least one", len(samples))
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	unit := plotSize / max(r.X1-r.X0, r.Y1-r.Y0)
	w, h := max(1, int(unit*(r.X1-r.X0))), max(1, int(unit*(r.Y1-r.Y0)))
	p := newPlane(r, w, h, 0)
	var outside, none int
	for i := 0; i < len(samples); i += 2 {
		x := (float64(samples[i]) - r.X0) / (r.X1 - r.X0)
		y := (float64(samples[i+1]) - r.Y0) / (r.Y1 - r.Y0)
		switch {
		case math.IsNaN(x) || math.IsNaN(y):
			none++
		case x < 0 || x > 1 || y < 0 || y > 1:
			outside++
		default:
			p.dot(p.area.Min.X+min(w-1, int(x*float64(w))), p.area.Max.Y-1-min(h-1, int(y*float64(h))))
		}
	}
	p.title(caption(len(samples)/2, called, outside, none))
	return p.NRGBA, nil
}

func caption(n int, called string, outside, none int) string {
	parts := []string{fmt.Sprintf("%d %s", n, called)}
	if outside > 0 {
		parts = append(parts, fmt.Sprintf("%d outside", outside))
	}
	if none > 0 {
		parts = append(parts, fmt.Sprintf("%d NaN", none))
	}
	return strings.Join(parts, ", ")
}

// dot darkens the pixels around (x, y) that lie in the area.
func (p *plane) dot(x, y int) {
	ink := color.NRGBA{20, 50, 120, 255}
	for dy := -1; dy <= 1; dy++ {
		for dx := -1; dx <= 1; dx++ {
			at := image.Pt(x+dx, y+dy)
			if !at.In(p.area) {
				continue
			}
			part := 0.5 // of the ink; less at the corners
			if dx != 0 && dy != 0 {
				part = 0.2
			}
			old := p.NRGBAAt(at.X, at.Y)
			mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + part*(float64(b)-float64(a)))) }
			p.SetNRGBA(at.X, at.Y, color.NRGBA{mix(old.R, ink.R), mix(old.G, ink.G), mix(old.B, ink.B), 255})
		}
	}
}
