package picture

import (
	"fmt"
	"image"
	"image/color"
	"math"
)

// Map is a density on the cells of a region.
type Map struct {
	LogP   []float64 // (H, W), at Region.Centres(W, H); −Inf is no density
	W, H   int
	Region Region
}

// Scale says which values of a density become which colours.
type Scale int

const (
	Linear Scale = iota // from 0 to the largest
	Log                 // six decades, down from the largest; what is less is as the least
)

const decades = 6

// Density is the map in colours, from dark (little) to light, with a bar that
// says what they mean. Values need not be normalised. NaN and +Inf are errors:
// there is no such density.
func Density(m Map, scale Scale) (image.Image, error) {
	most, err := m.check(scale)
	if err != nil {
		return nil, err
	}
	zoom := max(1, plotSize/max(m.W, m.H))
	p := newPlane(m.Region, m.W*zoom, m.H*zoom, 2*gap+barWidth+letterW*9)
	for y := range m.H * zoom {
		for x := range m.W * zoom {
			v := m.LogP[(m.H-1-y/zoom)*m.W+x/zoom]
			p.SetNRGBA(p.area.Min.X+x, p.area.Min.Y+y, cubehelix(scale.level(v-most)))
		}
	}
	p.title(scale.String())
	p.bar(scale, most)
	return p.NRGBA, nil
}

// check returns the largest log density.
func (m Map) check(scale Scale) (most float64, err error) {
	switch {
	case m.W < 1 || m.H < 1 || len(m.LogP) != m.W*m.H:
		return 0, fmt.Errorf("picture: %d values of a density, expected %d×%d, at least one", len(m.LogP), m.H, m.W)
	case scale != Linear && scale != Log:
		return 0, fmt.Errorf("picture: unknown scale %d", int(scale))
	}
	most = math.Inf(-1)
	for i, v := range m.LogP {
		if math.IsNaN(v) || math.IsInf(v, 1) {
			return 0, fmt.Errorf("picture: the log density at cell (%d, %d) is %v: the model has diverged", i%m.W, i/m.W, v)
		}
		most = max(most, v)
	}
	if math.IsInf(most, -1) {
		return 0, fmt.Errorf("picture: the density is 0 in all of [%v, %v] × [%v, %v]", m.Region.X0, m.Region.X1, m.Region.Y0, m.Region.Y1)
	}
	return most, m.Region.check()
}

func (s Scale) String() string {
	if s == Log {
		return "density, log scale"
	}
	return "density"
}

// level is the place on the scale, from 0 to 1, of a log density relative to the
// largest.
func (s Scale) level(v float64) float64 {
	if s == Log {
		return max(0, 1+v/(decades*math.Ln10))
	}
	return math.Exp(v)
}

const barWidth = 14

// bar draws the colours beside the area, and what its ends are.
func (p *plane) bar(scale Scale, most float64) {
	left := p.area.Max.X + 2*gap
	bar := image.Rect(left, p.area.Min.Y, left+barWidth, p.area.Max.Y)
	for y := bar.Min.Y; y < bar.Max.Y; y++ {
		level := float64(bar.Max.Y-1-y) / float64(max(1, bar.Dy()-1))
		for x := bar.Min.X; x < bar.Max.X; x++ {
			p.SetNRGBA(x, y, cubehelix(level))
		}
	}
	p.box(bar)
	least := "0"
	if scale == Log {
		least = exponential(most - decades*math.Ln10)
	}
	p.write(exponential(most), bar.Max.X+gap, bar.Min.Y+letterH)
	p.write(least, bar.Max.X+gap, bar.Max.Y)
}

// exponential is eˣ in three digits, or so written where that is no number.
func exponential(x float64) string {
	if v := math.Exp(x); v > 0 && !math.IsInf(v, 1) {
		return number(v)
	}
	return "e^" + number(x)
}

// cubehelix is a colour for a level from 0 to 1, whose brightness rises evenly
// with it, so that it can be read in grey too [Green, "A colour scheme for the
// display of astronomical intensity images", 2011], with its own settings: start
// 0.5, −1.5 rotations, hue 1, gamma 1.
func cubehelix(level float64) color.NRGBA {
	angle := 2 * math.Pi * (0.5/3 + 1 - 1.5*level)
	sin, cos := math.Sincos(angle)
	depth := level * (1 - level) / 2
	channel := func(c, s float64) uint8 {
		return uint8(math.Round(255 * min(1, max(0, level+depth*(c*cos+s*sin)))))
	}
	return color.NRGBA{channel(-0.14861, 1.78277), channel(-0.29227, -0.90649), channel(1.97294, 0), 255}
}
