package density

import (
	"fmt"
	"math"

	"ebtrain/ddp/philox"
)

// Gauss is a mixture of Gaussians, all as likely, each with the covariance SD²·I.
// Their means lie on a circle around the origin in the first two coordinates,
// mode k at the angle 2πk/Modes; a single mode lies in the origin.
type Gauss struct {
	D      int     // coordinates, two at least if there are several modes
	Modes  int     // 1 to 1024
	Radius float64 // of the circle
	SD     float64 // of each mode
}

// UsualGauss is a ring of eight modes in the plane.
func UsualGauss() Gauss { return Gauss{D: 2, Modes: 8, Radius: 1, SD: 0.1} }

// Validate implements Density.
func (g Gauss) Validate() error {
	positive := func(v float64) bool { return v > 0 && v <= 1e6 } // false of no number
	switch {
	case g.D < 1 || g.D > 1<<14:
		return fmt.Errorf("dim is %d, expected 1 to %d", g.D, 1<<14)
	case g.Modes < 1 || g.Modes > 1024:
		return fmt.Errorf("modes is %d, expected 1 to 1024", g.Modes)
	case g.Modes > 1 && g.D < 2:
		return fmt.Errorf("dim is %d, expected at least 2 for %d modes", g.D, g.Modes)
	case !positive(g.SD):
		return fmt.Errorf("sd is %g, expected more than 0 and at most 1e6", g.SD)
	case g.Modes > 1 && !positive(g.Radius):
		return fmt.Errorf("radius is %g, expected more than 0 and at most 1e6", g.Radius)
	}
	return nil
}

// Dim implements Density.
func (g Gauss) Dim() int { return g.D }

// String implements Density.
func (g Gauss) String() string {
	if g.Modes == 1 { // Radius means nothing
		return fmt.Sprintf("gauss dim=%d modes=1 sd=%g", g.D, g.SD)
	}
	return fmt.Sprintf("gauss dim=%d modes=%d radius=%g sd=%g", g.D, g.Modes, g.Radius, g.SD)
}

func (g Gauss) stream() uint16 { return gaussStream }

// draw takes the first word for the mode, and normals from block 1.
func (g Gauss) draw(n philox.Name, dst []float64) {
	k := int(uint64(n.Block(0)[0]) * uint64(g.Modes) >> 32)
	n.NormalFrom(dst, 1)
	for i := range dst {
		dst[i] = float64(g.SD * dst[i])
	}
	if g.Modes > 1 {
		x, y := g.mean(k)
		dst[0], dst[1] = dst[0]+x, dst[1]+y
	}
}

// mean is where mode k lies. Sine and cosine are rounded to 2⁻²⁰, to what they are
// on every machine.
func (g Gauss) mean(k int) (x, y float64) {
	s, c := math.Sincos(2 * math.Pi * float64(k) / float64(g.Modes))
	round := func(v float64) float64 { return math.Round(v*(1<<20)) / (1 << 20) }
	return float64(g.Radius * round(c)), float64(g.Radius * round(s))
}
