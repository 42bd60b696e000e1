package main

import (
	"image"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ebtrain/trainer/run/diagram"
	"ebtrain/trainer/run/picture"
)

// draw is the picture of all diagrams, in rows, below the names of the runs where there
// are several.
func (o options) draw(runs []history, columns []string) (image.Image, error) {
	var all []*plot.Plot
	for _, name := range columns {
		p, err := o.diagram(runs, name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(runs) == 1 {
		return diagram.Beside(all, nil), nil
	}
	legend := names(runs)
	return diagram.Beside(all, &legend), nil
}

// names has the runs' names.
func names(runs []history) plot.Legend {
	l := plot.NewLegend()
	l.Left, l.Top, l.Padding = true, true, vg.Points(3)
	for i, h := range runs {
		line := &plotter.Line{LineStyle: draw.LineStyle{Color: picture.Hue(i, len(runs)), Width: vg.Points(2)}}
		l.Add(h.name, line)
	}
	return l
}

// diagram has a column of all runs.
func (o options) diagram(runs []history, name string) (*plot.Plot, error) {
	p := diagram.New(name, string(o.x))
	var values []float64
	for i, h := range runs {
		x, y, _ := h.column(name, o.x)
		values = append(values, y...)
		bins := thin(x, y)
		if err := add(p, bins, len(bins) < len(y), picture.Hue(i, len(runs))); err != nil {
			return nil, err
		}
	}
	if len(values) == 0 { // all are NaN or infinite, and an axis wants an end
		p.Title.Text += ": no value is a number"
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
		return p, nil
	}
	p.X.Min, p.X.Max = o.extent(runs)
	p.Y.Min, p.Y.Max = shown(values, o.whole)
	return p, nil
}

// extent is the horizontal axis, the same in all diagrams.
func (o options) extent(runs []history) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, h := range runs {
		low = min(low, h.place(h.records[0], o.x))
		high = max(high, h.place(h.records[len(h.records)-1], o.x))
	}
	if low == high {
		return low - 1, high + 1
	}
	return low, high
}

// add draws a curve, and a band where its points are means.
func add(p *plot.Plot, bins []bin, band bool, c color.RGBA) error {
	if len(bins) == 0 {
		return nil
	}
	if band {
		b, err := plotter.NewPolygon(edge(bins))
		if err != nil {
			return err
		}
		b.Color, b.LineStyle.Width = color.NRGBA{c.R, c.G, c.B, 60}, 0
		p.Add(b)
	}
	points := make(plotter.XYs, len(bins))
	for i, b := range bins {
		points[i] = plotter.XY{X: b.x, Y: within(b.y)}
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.3)
	p.Add(line)
	if len(bins) == 1 { // no line has one end
		dots.Color = c
		p.Add(dots)
	}
	return nil
}

// edge goes along the most of all bins and back along their least.
func edge(bins []bin) plotter.XYs {
	n := len(bins)
	points := make(plotter.XYs, 2*n)
	for i, b := range bins {
		points[i], points[2*n-1-i] = plotter.XY{X: b.x, Y: within(b.high)}, plotter.XY{X: b.x, Y: within(b.low)}
	}
	return points
}

func within(y float64) float64 { return max(-far, min(y, far)) }
