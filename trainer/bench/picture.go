package main

import (
	"fmt"
	"image/color"
	"io"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"ebtrain/collective/cost"
	"ebtrain/data/atomicfile"
)

const (
	width  = 7 * vg.Inch
	height = 4.5 * vg.Inch
)

var (
	blue   = color.RGBA{R: 31, G: 119, B: 180, A: 255}
	green  = color.RGBA{R: 44, G: 160, B: 44, A: 255}
	orange = color.RGBA{R: 255, G: 127, B: 14, A: 255}
	red    = color.RGBA{R: 214, G: 39, B: 40, A: 255}
)

// curve is efficiency over ranks.
type curve struct {
	name   string
	color  color.Color
	dashed bool
	x      []float64
	y      []cost.Interval
}

func (c curve) Len() int                { return len(c.x) }
func (c curve) XY(i int) (x, y float64) { return c.x[i], c.y[i].Value }
func (c curve) YError(i int) (l, h float64) {
	return c.y[i].Value - c.y[i].Low, c.y[i].High - c.y[i].Value
}

// curves are the efficiencies that were measured, and those that are predicted.
func (r *Report) curves() []curve {
	all := []curve{
		{name: "strong", color: blue}, {name: "weak", color: green},
		{name: "predicted, strong", color: orange, dashed: true}, {name: "predicted, weak", color: red, dashed: true},
	}
	one := cost.Interval{Value: 1, Low: 1, High: 1}
	add := func(c *curve, ranks int, e *cost.Interval) {
		if e == nil {
			e = &one
		}
		c.x, c.y = append(c.x, float64(ranks)), append(c.y, *e)
	}
	for _, c := range r.Cases {
		if c.Strong {
			add(&all[0], c.Ranks, c.StrongEfficiency)
		}
		if c.Weak {
			add(&all[1], c.Ranks, c.WeakEfficiency)
		}
	}
	for _, p := range r.Predictions {
		if p.Strong {
			add(&all[2], p.Ranks, &p.Efficiency)
		} else {
			add(&all[3], p.Ranks, &p.Efficiency)
		}
	}
	return all
}

// draw writes a picture of all efficiencies.
func (r *Report) draw(file string) error {
	p := plot.New()
	p.Title.Text = r.Method
	p.X.Label.Text, p.Y.Label.Text = "ranks", "efficiency"
	p.X.Scale, p.Y.Min, p.Y.Max = plot.LogScale{}, 0, 1.1
	var ticks plot.ConstantTicks
	p.Add(plotter.NewGrid())
	p.Legend.Top = false
	p.Legend.Left = true
	for _, c := range r.curves() {
		if len(c.x) == 0 {
			continue
		}
		for _, x := range c.x {
			ticks = append(ticks, plot.Tick{Value: x, Label: strconv.Itoa(int(x))})
		}
		line, points, err := plotter.NewLinePoints(c)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		bars, err := plotter.NewYErrorBars(c)
		if err != nil {
			return fmt.Errorf("plot: %w", err)
		}
		line.Color, points.Color, bars.Color = c.color, c.color, c.color
		if c.dashed {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line, points, bars)
		p.Legend.Add(c.name, line, points)
	}
	p.X.Tick.Marker = ticks
	p.X.Min, p.X.Max = p.X.Min/1.3, p.X.Max*1.6 // room, for a label of five digits, and a width where there is one number of ranks
	image := vgimg.New(width, height)
	p.Draw(draw.New(image))
	return atomicfile.Write(file, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: image}.WriteTo(w)
		return err
	})
}
