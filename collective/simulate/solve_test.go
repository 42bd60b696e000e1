package simulate

import (
	"math"
	"testing"
)

// met is a point of a path that meets the first two costs so often.
func met(us, first, second float64) point {
	p := point{us: us, model: 1, weight: 1, path: make([]float64, nCosts)}
	p.path[0], p.path[1] = first, second
	return p
}

func close8(a, b float64) bool { return math.Abs(a-b) <= 1e-8*math.Max(1, math.Abs(b)) }

// TestBest: where least squares want a cost below 0, the best of the sets of costs without it is
// taken, by hand here: weighted, and by relative errors.
func TestBest(t *testing.T) {
	half, twice := met(5, 1, 2), met(5, 1, 2)
	half.weight, twice.model = 0.5, 2
	for _, c := range []struct {
		points        []point
		first, second float64
	}{
		{[]point{met(3, 1, 1), met(5, 1, 2)}, 1, 2},      // as it is
		{[]point{met(10, 1, 1), met(5, 1, 2)}, 7.5, 0},   // else 15 and −5
		{[]point{met(5, 1, 1), met(20, 1, 2)}, 0, 9},     // else −10 and 15
		{[]point{met(10, 1, 1), half}, 12.5 / 1.5, 0},    // half of the second
		{[]point{met(10, 1, 1), twice}, 11.25 / 1.25, 0}, // a quarter of it
		{[]point{met(10, 1, 0), met(10, 1, 0)}, 10, 0},   // the second is not met
		{[]point{met(2, 1, 2), met(4, 2, 4)}, 0, 1},      // both cannot be told apart
	} {
		f := fit{points: c.points, free: make([]bool, nCosts)}
		for _, p := range c.points {
			for i, n := range p.path {
				f.free[i] = f.free[i] || n > 0
			}
		}
		x := f.best()
		if c.points[0].path[1] == 2 { // either of them alone explains all
			if loss := math.Abs(x[0] + 2*x[1] - 2); !(loss <= 1e-8) {
				t.Errorf("%v does not explain the times", x)
			}
			continue
		}
		if !close8(x[0], c.first) || !close8(x[1], c.second) || len(x) != nCosts {
			t.Errorf("%v, want %v and %v", x, c.first, c.second)
		}
	}
}

// TestReweigh: the spread is that of a normal distribution with the residuals' median, and what is
// further off than 1.345 of it counts less.
func TestReweigh(t *testing.T) {
	for _, c := range []struct {
		residuals []float64
		median    float64
	}{{[]float64{3, -1, 2, 9, 0}, 2}, {[]float64{4, 1, -3, 2}, 2.5}, {[]float64{0.5}, 0.5}} {
		var f fit
		for _, r := range c.residuals {
			f.points = append(f.points, point{residual: r})
		}
		f.reweigh()
		if !close8(f.spread, 1.4826*c.median) {
			t.Errorf("%v: a spread of %v, want %v", c.residuals, f.spread, 1.4826*c.median)
		}
		for i, r := range c.residuals {
			want := 1.0
			if far := math.Abs(r) / (1.345 * 1.4826 * c.median); far > 1 {
				want = 1 / far
			}
			if got := f.points[i].weight; !close8(got, want) {
				t.Errorf("%v: %v counts %v, want %v", c.residuals, r, got, want)
			}
		}
	}
}

// TestIntervals: of one cost the interval is that of a mean, by Student's t for 4 degrees of freedom,
// 2.776445; with wild times by Huber's variance, and never wider than what a time allows.
func TestIntervals(t *testing.T) {
	const student, normal = 2.7764451, 1.9599640
	f := fit{costs: make([]float64, nCosts), free: make([]bool, nCosts), spread: 1}
	f.free[0] = true
	for _, r := range []float64{0.1, -0.1, 0.2, -0.2, 0} {
		p := met(1+r, 1, 0)
		p.residual = r
		f.points = append(f.points, p)
	}
	check := func(name string, variance, half float64) {
		t.Helper()
		got, precision := f.intervals()
		if !(math.Abs(got[0]-half) <= 1e-6) {
			t.Errorf("%s: ±%v, want ±%v", name, got[0], half)
		}
		if want := 5 / (variance * math.Pow(student/normal, 2)); len(precision) != nCosts || !(math.Abs(precision[0][0]/want-1) <= 1e-6) || precision[0][1] != 0 || precision[1][1] != 0 {
			t.Errorf("%s: precision %v, want %v", name, precision, want)
		}
	}
	check("all", 0.1/4, student*math.Sqrt(0.1/4/5))

	f.spread = 0.1 // two are beyond 1.345 of it
	for i := range f.points {
		f.points[i].weight = min(1, huber*f.spread/max(math.Abs(f.points[i].residual), 1e-12))
	}
	k := 1 + 1./5*0.4/0.6
	variance := k * k * (2*0.01 + 2*0.1345*0.1345) / 4 / (0.6 * 0.6)
	check("two wild ones", variance, student*math.Sqrt(variance/5))

	f.points[4].us = 0.05 // which alone explains it
	if got, _ := f.intervals(); got[0] != 0.05 {
		t.Errorf("±%v, want ±0.05", got[0])
	}
	f.points = f.points[:1]
	if got, precision := f.intervals(); got[0] != 1.1 || precision != nil {
		t.Errorf("of one time: ±%v and precision %v, want ±1.1 and none", got[0], precision)
	}
}

// TestFar: a time that is half as long again as the model's, or less than two thirds, is worth a
// sentence.
func TestFar(t *testing.T) {
	for us, far := range map[float64]bool{2.98: false, 3.02: true, 1.34: false, 1.32: true} {
		f := fit{points: []point{met(1, 1, 0), {us: us, model: 2}}}
		if got := f.far(); (got != "") != far {
			t.Errorf("%v: %q", us, got)
		}
	}
}
