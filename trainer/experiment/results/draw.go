package results

import (
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"ebtrain/data/atomicfile"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/diagram"
	"ebtrain/trainer/run/picture"
)

// drawn is a picture in the folder of the results, or a text.
type drawn struct {
	title string
	file  string // relative to RESULTS.md; "" for a text
	text  string // whole lines
}

const (
	width  = 7 * vg.Inch
	height = 4.5 * vg.Inch
	margin = 0.1 * vg.Inch
)

// draw makes the figures and copies the pictures of an experiment.
func (s *Sheet) draw(folder string) ([]drawn, error) {
	var all []drawn
	for _, f := range s.e.Figures {
		name := s.e.Name + "-" + f.File + ".png"
		ok, err := s.plot(f, filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", name, err)
		}
		if ok {
			all = append(all, drawn{title: f.Title, file: filepath.Base(folder) + "/" + name})
		}
	}
	for _, p := range s.e.Pictures {
		more, err := s.copies(p, folder)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// plot draws a figure; false if there is nothing in it.
func (s *Sheet) plot(f plan.Figure, file string) (bool, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.Title, f.X, f.Y
	p.Add(plotter.NewGrid())
	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	logarithmic(&p.X, f.LogX)
	logarithmic(&p.Y, f.LogY)
	n := 0
	for i, r := range s.e.Rows {
		points := s.points(r, f)
		if len(points) == 0 {
			continue
		}
		n++
		line, err := plotter.NewLine(points)
		if err != nil {
			return false, err
		}
		line.Color, line.Width = picture.Hue(i, len(s.e.Rows)), vg.Points(1.3)
		p.Add(line)
		legend.Add(r.Name, line)
		if err := s.beside(p, r.Name, f, line.Color); err != nil {
			return false, err
		}
	}
	if n == 0 {
		return false, nil
	}
	if f.Low != f.High {
		p.Y.Min, p.Y.Max = f.Low, f.High
	}
	diagram.Apart(&p.X, f.LogX)
	diagram.Apart(&p.Y, f.LogY)
	image := vgimg.New(width, height)
	all := draw.New(image)
	names := legend.Rectangle(all).Size().X
	p.Draw(draw.Crop(all, 0, -names-2*margin, 0, 0))
	legend.Draw(draw.Crop(all, width-names-margin, 0, 0, -margin))
	return true, atomicfile.Write(file, func(w io.Writer) error {
		_, err := vgimg.PngCanvas{Canvas: image}.WriteTo(w)
		return err
	})
}

// points are those of a row in a figure; none if it is not in it.
func (s *Sheet) points(r plan.Row, f plan.Figure) plotter.XYs {
	if f.Rows != nil && !slices.Contains(f.Rows, r.Name) {
		return nil
	}
	return positive(s.mean(r.Name, f.Curve), f)
}

// beside draws the figure's other curve of a row, dashed.
func (s *Sheet) beside(p *plot.Plot, row string, f plan.Figure, c color.Color) error {
	points := positive(s.mean(row, f.Beside), f)
	if f.Beside == "" || len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width, line.Dashes = c, vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(line)
	return nil
}

func logarithmic(a *plot.Axis, yes bool) {
	if yes {
		a.Scale, a.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	}
}

// decades are marks at 1, 2 and 5 times the powers of ten; at the powers alone where
// there are many.
func decades(least, most float64) []plot.Tick {
	const many = 4
	steps := []float64{1, 2, 5}
	if math.Log10(most/least) > many {
		steps = steps[:1]
	}
	var marks []plot.Tick
	for k := math.Floor(math.Log10(least)); math.Pow(10, k) <= most; k++ {
		for _, m := range steps {
			if v := m * math.Pow(10, k); v >= least && v <= most {
				marks = append(marks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64)})
			}
		}
	}
	return marks
}

// positive are the points that can be drawn on the axes.
func positive(points []measure.Point, f plan.Figure) plotter.XYs {
	var out plotter.XYs
	for _, p := range points {
		shown := f.Low == f.High || f.Low <= p.Y && p.Y <= f.High
		if shown && (p.X > 0 || !f.LogX) && (p.Y > 0 || !f.LogY) {
			out = append(out, plotter.XY{X: p.X, Y: p.Y})
		}
	}
	return out
}

// mean is a curve of a row, the mean of the finished seeds that have a point
// there.
func (s *Sheet) mean(row, curve string) []measure.Point {
	sum, n := map[float64]float64{}, map[float64]float64{}
	for _, f := range s.finished {
		if f.Row != row {
			continue
		}
		for _, p := range f.status.Measured.Curves[curve] {
			sum[p.X] += p.Y
			n[p.X]++
		}
	}
	var points []measure.Point
	for _, x := range slices.Sorted(maps.Keys(sum)) {
		points = append(points, measure.Point{X: x, Y: sum[x] / n[x]})
	}
	return points
}

// copies copies the pictures of p, or takes their texts.
func (s *Sheet) copies(p plan.Picture, folder string) ([]drawn, error) {
	shown, _, err := s.shown(p)
	if err != nil {
		return nil, err
	}
	var all []drawn
	for _, f := range shown {
		b, err := os.ReadFile(f.file)
		if err != nil {
			return nil, err
		}
		title := p.Title + ": " + f.row
		if filepath.Ext(f.file) == ".txt" {
			all = append(all, drawn{title: title, text: string(b)})
			continue
		}
		name := fmt.Sprintf("%s-%s-%s", s.e.Name, f.row, filepath.Base(f.file))
		if err := atomicfile.WriteBytes(filepath.Join(folder, name), b); err != nil {
			return nil, err
		}
		all = append(all, drawn{title: title, file: filepath.Base(folder) + "/" + name})
	}
	return all, nil
}
