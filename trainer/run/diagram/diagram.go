// Package diagram makes diagrams of equal size and puts them beside each other in one
// picture: of what runs have logged (curves), of how their checkpoints were judged
// (evaluate).
//
// The functions keep no state and may be called from any goroutine.
package diagram

import (
	"image"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

const (
	width  = 4.2 * vg.Inch // of a diagram
	height = 2.8 * vg.Inch
	margin = 0.12 * vg.Inch
	widest = 3 // diagrams beside each other
)

// New is a diagram without curves, of what the title says over x.
func New(title, x string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, x
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(marks), plot.TickerFunc(marks)
	p.Add(plotter.NewGrid())
	return p
}

// Beside is the picture of all diagrams, at least one: in rows that are about as many as
// they are long, and at most three long. The legend, if it is not nil, is above them.
func Beside(diagrams []*plot.Plot, legend *plot.Legend) image.Image {
	across := min(widest, int(math.Ceil(math.Sqrt(float64(len(diagrams))))))
	down := (len(diagrams) + across - 1) / across
	named := vg.Length(0)
	if legend != nil {
		named = legend.Rectangle(draw.New(vgimg.New(width, height))).Size().Y + 2*margin
	}
	w, h := vg.Length(across)*(width+margin)+margin, vg.Length(down)*(height+margin)+margin
	img := vgimg.New(w, h+named)
	canvas := draw.New(img)
	if legend != nil {
		legend.Draw(draw.Crop(canvas, margin, -margin, h, -margin))
	}
	for i, p := range diagrams {
		left, top := margin+vg.Length(i%across)*(width+margin), h-margin-vg.Length(i/across)*(height+margin)
		Apart(&p.X, false)
		Apart(&p.Y, false)
		p.Draw(draw.Crop(canvas, left, left+width-w, top-height, top-h-named))
	}
	return img.Image()
}

// Apart gives an axis room around a value that is its only one. Plot has 1 on each side, which
// is nothing beside a large value, and on a logarithmic axis leaves 0 or less of a small one:
// it draws neither.
func Apart(a *plot.Axis, logarithmic bool) {
	const part = 1e-6
	switch {
	case a.Min != a.Max:
	case logarithmic:
		a.Min, a.Max = a.Min/2, 2*a.Max
	default:
		half := max(1, part*math.Abs(a.Min))
		a.Min, a.Max = a.Min-half, a.Max+half
	}
}

// marks are plot's own, with labels without zeros behind the point.
func marks(low, high float64) []plot.Tick {
	all := plot.DefaultTicks{}.Ticks(low, high)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = strconv.FormatFloat(all[i].Value, 'g', 6, 64)
		}
	}
	return all
}
