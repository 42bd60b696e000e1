package cost

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Point is a measured time.
type Point struct {
	Bytes int
	US    float64 // microseconds
}

// confidence is that of all intervals.
const confidence = 0.95

// huber is Huber's constant: up to so many deviations a point counts in full,
// which keeps 95 % of the efficiency where the noise is normal.
const huber = 1.345

// rounds of re-weighting; it settles in a dozen.
const rounds = 60

// Fit is the line through points: robust least squares of the relative errors,
// since a size of 8 bytes counts as much as one of 64 MB, whose time is a million
// times as long. It is iterated with Huber's weights; neither latency nor the
// time of a byte is negative. The intervals are Student's with Huber's (1973)
// variance. Fewer than three sizes have no line: Fit is nil.
//
//	minimise Σ ρ(rᵢ/s),  rᵢ = tᵢ/(α + β bytesᵢ) − 1,  s = 1.4826 median |rᵢ|
func Fit(points []Point) *Line {
	if len(points) < 3 || sameSizes(points) {
		return nil
	}
	f := fit{points: points, scale: make([]float64, len(points)), weight: make([]float64, len(points))}
	for i, p := range points {
		f.scale[i], f.weight[i] = 1/p.US, 1
	}
	for range rounds {
		f.solve()
		f.reweigh()
	}
	return f.line()
}

func sameSizes(points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool { return p.Bytes != points[0].Bytes })
}

// fit is one under way: microseconds, and microseconds a byte.
type fit struct {
	points      []Point
	alpha, beta float64
	scale       []float64 // makes a point's error relative: 1 over its time on the line
	weight      []float64 // Huber's
	residual    []float64
	spread      float64 // s
}

// normal are the sums of the normal equations, of weighted relative errors.
func (f *fit) normal(weighted bool) (ww, wx, wxx, wt, wxt float64) {
	for i, p := range f.points {
		w := f.scale[i] * f.scale[i]
		if weighted {
			w *= f.weight[i]
		}
		x := float64(p.Bytes)
		ww, wx, wxx = ww+w, wx+w*x, wxx+w*x*x
		wt, wxt = wt+w*p.US, wxt+w*x*p.US
	}
	return ww, wx, wxx, wt, wxt
}

func (f *fit) solve() {
	ww, wx, wxx, wt, wxt := f.normal(true)
	det := ww*wxx - wx*wx
	f.alpha, f.beta = (wxx*wt-wx*wxt)/det, (ww*wxt-wx*wt)/det
	switch { // at the bound the other is all there is
	case f.alpha < 0:
		f.alpha, f.beta = 0, wxt/wxx
	case f.beta < 0:
		f.alpha, f.beta = wt/ww, 0
	}
}

// reweigh finds the residuals, their spread, and what each point counts.
func (f *fit) reweigh() {
	f.residual = f.residual[:0]
	var sizes []float64
	for _, p := range f.points {
		// A line through the origin is no time for 0 bytes; nothing is faster than 1 ns.
		r := p.US/max(f.alpha+f.beta*float64(p.Bytes), 1e-3) - 1
		f.residual, sizes = append(f.residual, r), append(sizes, math.Abs(r))
	}
	slices.Sort(sizes)
	n := len(sizes)
	f.spread = max(1.4826*(sizes[n/2]+sizes[(n-1)/2])/2, 1e-9)
	for i, p := range f.points {
		f.scale[i] = 1 / max(f.alpha+f.beta*float64(p.Bytes), 1e-3)
		f.weight[i] = min(1, huber*f.spread/max(math.Abs(f.residual[i]), 1e-12))
	}
}

// line is the result: K²·Σψ²/(n−2)/(mean ψ')² (XᵀX)⁻¹ is the variance of the two,
// with ψ the residuals cut off at ±huber·s and ψ' 1 inside and 0 outside.
func (f *fit) line() *Line {
	n := float64(len(f.points))
	var inside, squares float64
	for i, r := range f.residual {
		squares += math.Pow(r*f.weight[i], 2)
		if math.Abs(r) <= huber*f.spread {
			inside += 1 / n
		}
	}
	inside = max(inside, 1/n)
	k := 1 + 2/n*(1-inside)/inside
	variance := k * k * squares / (n - 2) / (inside * inside)
	ww, wx, wxx, _, _ := f.normal(false)
	det := ww*wxx - wx*wx
	t := distuv.StudentsT{Sigma: 1, Nu: n - 2}.Quantile((1 + confidence) / 2)
	l := &Line{
		Latency:   around(f.alpha, t*math.Sqrt(variance*wxx/det)),
		PerByte:   around(1e3*f.beta, 1e3*t*math.Sqrt(variance*ww/det)),
		Residuals: slices.Clone(f.residual),
	}
	l.Bandwidth = Interval{inverse(l.PerByte.Value), inverse(l.PerByte.High), inverse(l.PerByte.Low)}
	return l
}

// around is value ± half, but never less than 0.
func around(value, half float64) Interval {
	return Interval{value, max(0, value-half), value + half}
}

// inverse is 1/x, and for 0 the largest number, since JSON has no infinity.
func inverse(x float64) float64 { return min(1/x, math.MaxFloat64) }
