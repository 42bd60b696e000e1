package measure

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"ebtrain/trainer/eval"
	"ebtrain/trainer/run/rundir"
)

// Point is a number at a step.
type Point struct {
	X float64 `json:"x"` // steps done
	Y float64 `json:"y"`
}

// windows is into how many parts of equal length a run is cut to see where a
// loss goes, and thinned the most points of a curve.
const (
	windows = 10
	thinned = 200
)

// logged takes a number from the values of a loss over the steps.
func logged(loss string, of func([]Point) (float64, error)) func(Evidence) (float64, error) {
	return func(e Evidence) (float64, error) {
		points, err := series(e, loss)
		if err != nil {
			return 0, err
		}
		return of(points)
	}
}

// upper is the loss that the model is trained on. Methods of one level have no
// other, and call it loss.
const upper = "upper"

// series are the values of a loss. X is the steps that were done.
// Where lines are lost there are none: what stands at the end then is no end.
func series(e Evidence, loss string) ([]Point, error) {
	records := e.Records
	if e.Lost != nil {
		return nil, e.Lost
	}
	if len(records) == 0 {
		return nil, errors.New("metrics.jsonl has no lines")
	}
	if _, ok := records[0].Losses[upper]; loss == upper && !ok {
		loss = "loss"
	}
	points := make([]Point, len(records))
	for i, r := range records {
		v, ok := r.Losses[loss]
		if !ok {
			return nil, fmt.Errorf("metrics.jsonl has no loss %s (it has %v)", loss, slices.Sorted(maps.Keys(r.Losses)))
		}
		points[i] = Point{float64(r.Step + 1), v}
	}
	return points, nil
}

// Curve is how a loss goes: medians of at most 200 windows of equal length.
func Curve(e Evidence, loss string) ([]Point, error) {
	points, err := series(e, loss)
	if err != nil {
		return nil, err
	}
	return medians(points, thinned), nil
}

// Lost says that lines are lost of a run of so many steps that wrote one in every so many;
// nil if none are.
func Lost(records []rundir.Record, steps, every int64) error {
	due, there := (steps+every-1)/every, int64(0)
	for _, r := range records {
		if r.Step < steps && r.Step%every == 0 {
			there++
		}
	}
	if there == due {
		return nil
	}
	return fmt.Errorf("metrics.jsonl has lost lines: it has %d of %d: put back what it held, or remove the folder of the cell to do it anew", there, due)
}

// medians are those of n windows of points, or of fewer if there are not as many
// points. X is the end of the window.
func medians(points []Point, n int) []Point {
	n = min(n, len(points))
	out := make([]Point, n)
	for i := range n {
		w := points[len(points)*i/n : len(points)*(i+1)/n]
		out[i] = Point{w[len(w)-1].X, median(w)}
	}
	return out
}

// median is that of the values of points; NaN if one of them is.
func median(points []Point) float64 {
	y := make([]float64, len(points))
	for i, p := range points {
		y[i] = p.Y
	}
	return eval.Median(y)
}

func first(points []Point) (float64, error) { return points[0].Y, nil }

// last is the median of the last tenth.
func last(points []Point) (float64, error) {
	m := medians(points, windows)
	return m[len(m)-1].Y, nil
}

// ErrShort means that a run has too few steps for a measure.
var ErrShort = errors.New("too few steps")

// near is the median of the five values nearest to a step.
func near(step float64) func([]Point) (float64, error) {
	return func(points []Point) (float64, error) {
		if end := points[len(points)-1].X; end < step {
			return 0, fmt.Errorf("%w: it has %v, want %v", ErrShort, end, step)
		}
		const many = 5
		sorted := slices.Clone(points)
		slices.SortStableFunc(sorted, func(a, b Point) int {
			return cmp.Compare(math.Abs(a.X-step), math.Abs(b.X-step))
		})
		return median(sorted[:min(many, len(sorted))]), nil
	}
}

// largestRise is the largest part by which the median of a tenth of the run is
// above that of the tenth before; negative where each is below.
func largestRise(points []Point) (float64, error) {
	m := medians(points, windows)
	if len(m) < 2 {
		return 0, fmt.Errorf("%w: fewer than two lines in metrics.jsonl", ErrShort)
	}
	rise := math.Inf(-1)
	for i := range m[1:] {
		rise = max(rise, (m[i+1].Y-m[i].Y)/math.Abs(m[i].Y))
	}
	return rise, nil
}

// peak is the largest of the medians of short windows: single values of a loss
// with noise are no peak.
func peak(points []Point) (float64, error) {
	top := math.Inf(-1)
	for _, p := range medians(points, thinned) {
		top = max(top, p.Y)
	}
	return top, nil
}

// decades is by how many powers of ten the loss is at its end below its peak.
func decades(points []Point) (float64, error) {
	top, err := peak(points)
	if err != nil {
		return 0, err
	}
	end, err := last(points)
	if err != nil {
		return 0, err
	}
	if end <= 0 {
		return 0, fmt.Errorf("the loss ends at %v, and decades are of positive numbers", end)
	}
	return math.Log10(top / end), nil
}

// stepTime is the median time of a step, without the first tenth of the steps.
func stepTime(e Evidence) (float64, error) {
	if len(e.Records) == 0 {
		return 0, errors.New("metrics.jsonl has no lines")
	}
	var times []float64
	for _, r := range e.Records[len(e.Records)/10:] {
		times = append(times, r.StepMS)
	}
	return eval.Median(times), nil
}
