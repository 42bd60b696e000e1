package main

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"io"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"ebtrain/data/atomicfile"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/run/diagram"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
)

// chartFile is where the picture of several checkpoints goes, "" for nowhere; an error if it
// cannot be written there.
func (o options) chartFile() (string, error) {
	if o.picture == noPicture {
		return "", nil
	}
	ema := ""
	if o.of.Averages {
		ema = "-ema"
	}
	file := filepath.Join(rundir.Layout(o.run).Samples(), "checkpoints-"+o.split+ema+".png")
	if err := cmp.Or(atomicfile.Check(file), picture.CheckReplace(file)); err != nil {
		return "", fmt.Errorf("the picture %s cannot be written: %w: --picture %s makes none", file, err, noPicture)
	}
	return file, nil
}

// drawInto writes the picture of the table, if there is one and it has a place, and names it.
func (t table) drawInto(file string, said io.Writer) error {
	if file == "" {
		return nil
	}
	m, err := t.chart()
	if err != nil || m == nil {
		return err
	}
	if err := picture.WritePNG(file, m); err != nil {
		return fmt.Errorf("the picture %s is not there: %w", file, err)
	}
	_, err = fmt.Fprintf(said, "evaluate: the numbers over the steps are in %s\n", file)
	return err
}

// chart has a diagram of each number that at least two rows have, over their steps; nil if
// there is none. What is no number is not drawn.
func (t table) chart() (image.Image, error) {
	names, best := t.columns()
	var all []*plot.Plot
	for c, name := range names {
		p, err := t.diagram(name, best[c])
		if err != nil {
			return nil, err
		}
		if p != nil {
			all = append(all, p)
		}
	}
	if all == nil {
		return nil, nil
	}
	return diagram.Beside(all, nil), nil
}

// diagram is that of a number: a line with a dot for each row, a larger one for the best, and
// across it, dashed, what real samples have. It is nil if there is no line.
func (t table) diagram(name string, best int) (*plot.Plot, error) {
	var points, floor, marked plotter.XYs
	var better compare.Better
	for i, row := range t {
		n, ok := row.number(name)
		if !ok || math.IsNaN(n.value) || math.IsInf(n.value, 0) {
			continue
		}
		at := plotter.XY{X: float64(row.step), Y: n.value}
		points, better = append(points, at), n.better
		if i == best {
			marked = plotter.XYs{at}
		}
		if n.floor != nil {
			floor = append(floor, plotter.XY{X: at.X, Y: *n.floor})
		}
	}
	if len(points) < 2 {
		return nil, nil
	}
	p := diagram.New(title(name, better, len(floor) > 0), "steps")
	if err := line(p, points, 0); err != nil {
		return nil, err
	}
	if err := dots(p, points, 2); err != nil {
		return nil, err
	}
	if err := dots(p, marked, 4.5); err != nil {
		return nil, err
	}
	if err := line(p, floor, vg.Points(4)); err != nil {
		return nil, err
	}
	room := (p.Y.Max - p.Y.Min) / 16 // for dots at the edges
	p.Y.Min, p.Y.Max = p.Y.Min-room, p.Y.Max+room
	return p, nil
}

// number is the row's number of this name.
func (row tableRow) number(name string) (n number, ok bool) {
	if row.report == nil {
		return n, false
	}
	for _, n := range row.report.numbers() {
		if n.name == name {
			return n, true
		}
	}
	return n, false
}

// title says what a diagram is of, which way is better, and what is dashed.
func title(name string, better compare.Better, floor bool) string {
	if better != "" {
		name += ", " + string(better) + " is better"
	}
	if floor {
		name += "; real samples dashed"
	}
	return name
}

// line draws a line through points, if there are two; dashed by pieces of a length, if it is
// not 0.
func line(p *plot.Plot, points plotter.XYs, dash vg.Length) error {
	if len(points) < 2 {
		return nil
	}
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Width = picture.Hue(0, 1), vg.Points(1.3)
	if dash > 0 {
		l.Dashes, l.Color = []vg.Length{dash, dash}, color.Gray{Y: 90}
	}
	p.Add(l)
	return nil
}

// dots draws points as dots of a radius.
func dots(p *plot.Plot, points plotter.XYs, radius vg.Length) error {
	if len(points) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: picture.Hue(0, 1), Radius: radius, Shape: draw.CircleGlyph{}}
	p.Add(s)
	return nil
}
