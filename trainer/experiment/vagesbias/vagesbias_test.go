package vagesbias

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/model/grbm"
)

// tiny is a scene of 2 visible units and 3 hidden ones.
func tiny(gauss bool) scene {
	var kappa []float64
	if gauss {
		kappa = []float64{3, 4, 5.5}
	}
	return newScene([]float64{0.7, -0.4}, ddptest.Noise(1, 6), ddptest.Noise(2, 3), kappa)
}

// theta is W, b, c and κ as one vector, and at a scene with it.
func (s scene) theta() []float64 {
	return slices.Concat(s.w, make([]float64, len(s.v)), s.c, s.kappa)
}

func (s scene) at(theta []float64) (w, b, c, kappa []float64) {
	n := len(s.w)
	w, theta = theta[:n], theta[n:]
	b, theta = theta[:len(s.v)], theta[len(s.v):]
	c, kappa = theta[:len(s.c)], theta[len(s.c):]
	if len(kappa) == 0 {
		kappa = nil
	}
	return w, b, c, kappa
}

// logp is log p̃(v,h), by the energy's formula.
func (s scene) logp(theta, v, h []float64) (sum float64) {
	w, b, c, kappa := s.at(theta)
	for i, x := range v {
		sum -= (x - b[i]) * (x - b[i]) / 2
		for j := range h {
			sum += x * w[i*len(h)+j] * h[j]
		}
	}
	for j := range h {
		sum += c[j] * h[j]
		if kappa != nil {
			sum -= kappa[j] * h[j] * h[j] / 2
		}
	}
	return sum
}

// Steps of differences: of polynomials of the second degree, for which any is exact, and
// of others.
const (
	exactly = 0.5
	nearly  = 1e-4
)

// slope is the central difference of y in each entry of x.
func slope(x []float64, d float64, y func([]float64) float64) []float64 {
	g := make([]float64, len(x))
	for i := range x {
		up, down := slices.Clone(x), slices.Clone(x)
		up[i] += d
		down[i] -= d
		g[i] = (y(up) - y(down)) / (2 * d)
	}
	return g
}

// score is entry i of ∇_v log p̃(v,h).
func (s scene) score(theta, h []float64, i int) float64 {
	return slope(s.v, exactly, func(v []float64) float64 { return s.logp(theta, v, h) })[i]
}

// marginal is entry i of ∇_v log p(v): −(v−b) + W·E[h|v].
func (s scene) marginal(theta []float64, i int) float64 {
	w, b, c, kappa := s.at(theta)
	t := newScene(s.v, w, c, kappa)
	sum := b[i] - s.v[i]
	for j, m := range t.moments(t.posterior()).mean {
		sum += w[i*len(c)+j] * m
	}
	return sum
}

// point is an h with its weight in an expectation.
type point struct {
	h      []float64
	weight float64
}

// points make expectations under q exact: all states of units; of a Gaussian h the
// nodes of a Gauss–Hermite rule of three points in each direction, which is exact for
// polynomials up to the fifth degree.
func (s scene) points(q belief) []point {
	all := []point{{nil, 1}}
	m := s.moments(q)
	for j := range s.c {
		values, weights := []float64{0, 1}, []float64{1 - m.mean[j], m.mean[j]}
		if s.kappa != nil {
			far := math.Sqrt(3 * m.variance[j])
			values, weights = []float64{m.mean[j] - far, m.mean[j], m.mean[j] + far}, []float64{1. / 6, 2. / 3, 1. / 6}
		}
		var more []point
		for _, p := range all {
			for k, x := range values {
				more = append(more, point{append(slices.Clone(p.h), x), p.weight * weights[k]})
			}
		}
		all = more
	}
	return all
}

func mean(points []point, y func(h []float64) float64) (sum float64) {
	for _, p := range points {
		sum += p.weight * y(p.h)
	}
	return sum
}

// Both errors in closed form are those by their definitions: expectations as sums,
// derivatives as differences. At the posterior they are 0, which are the identities
// behind both estimates.
func TestErrorsByDefinition(t *testing.T) {
	for name, gauss := range map[string]bool{Units: false, Gauss: true} {
		for _, eta := range []float64{0, 0.4} {
			s := tiny(gauss)
			p := s.posterior()
			q := p.moved(eta, ddptest.Noise(3, len(p)))
			points, theta := s.points(q), s.theta()
			vaes, vages := 0.0, 0.0
			for i := range s.v {
				score := func(h []float64) float64 { return s.score(theta, h, i) }
				e := mean(points, score) - s.marginal(theta, i)
				vaes += e * e
				want := slope(theta, nearly, func(theta []float64) float64 { return s.marginal(theta, i) })
				direct := slope(theta, exactly, func(theta []float64) float64 {
					return mean(points, func(h []float64) float64 { return s.score(theta, h, i) })
				})
				for k := range theta {
					along := func(h []float64) float64 {
						return slope(theta, exactly, func(theta []float64) float64 { return s.logp(theta, s.v, h) })[k]
					}
					cov := mean(points, func(h []float64) float64 { return score(h) * along(h) }) - mean(points, score)*mean(points, along)
					e := direct[k] + cov - want[k]
					vages += e * e
				}
			}
			d := s.moments(q).less(s.moments(p))
			if got := s.vaes(d); !(math.Abs(got-vaes) <= 1e-9) {
				t.Errorf("%s, noise %v: VaES is off by %v, want %v", name, eta, got, vaes)
			}
			if got := s.vages(d); !(math.Abs(got-vages) <= 1e-6*(1e-3+vages)) {
				t.Errorf("%s, noise %v: VaGES is off by %v, want %v", name, eta, got, vages)
			}
			if eta != 0 && !(vaes > 1e-4 && vages > 1e-4) {
				t.Errorf("%s: noise makes an error of %v and %v only", name, vaes, vages)
			}
		}
	}
}

// The divergences are those by their definitions.
func TestDivergences(t *testing.T) {
	for name, gauss := range map[string]bool{Units: false, Gauss: true} {
		s := tiny(gauss)
		p := s.posterior()
		q := p.moved(0.5, ddptest.Noise(3, len(p)))
		theta := s.theta()
		logq := func(q belief, h []float64) (sum float64) {
			m := s.moments(q)
			for j, x := range h {
				if gauss {
					sum -= (x-m.mean[j])*(x-m.mean[j])/(2*m.variance[j]) + math.Log(m.variance[j])/2
				} else {
					sum += x*math.Log(m.mean[j]) + (1-x)*math.Log(1-m.mean[j])
				}
			}
			return sum
		}
		want := mean(s.points(q), func(h []float64) float64 {
			if !gauss {
				return logq(q, h) - logq(p, h)
			}
			sum := 0.0
			for _, x := range slope(h, exactly, func(h []float64) float64 { return logq(q, h) - s.logp(theta, s.v, h) }) {
				sum += x * x / 2
			}
			return sum
		})
		if got := s.divergence(q, p); !(math.Abs(got-want) <= 1e-8) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := s.divergence(p, p); !(math.Abs(got) <= 1e-30) {
			t.Errorf("%s: of the posterior itself %v", name, got)
		}
	}
	// Both ways of computing it agree where one gives way to the other.
	for _, a := range []float64{-30, -3, 0, 2, 30} {
		in, out := divergence(a, a+0.000999), divergence(a, a+0.001001)
		if r := out / in; !(math.Abs(r-math.Pow(1.001/0.999, 2)) <= 1e-4) {
			t.Errorf("at %v: %v, then %v", a, in, out)
		}
	}
}

// The slope is 1 where the errors are small, nothing passes what is proven, and the
// models can be normalised, at the size of the experiment.
func TestMeasure(t *testing.T) {
	v := ddptest.Noise(5, 30)
	for _, gauss := range []bool{false, true} {
		for _, estimate := range []string{VaES, VaGES} {
			s := drawn(grbm.Size{Visible: 30, Hidden: 20}, v, gauss, 3)
			parts := 0
			out, err := s.measure(estimate, 0.03, 3, func(done, total int64) {
				if parts++; done != int64(parts) || total != levels {
					t.Errorf("part %d of %d", done, total)
				}
			})
			if err != nil || len(out.Curves[Bias]) != levels || len(out.Curves[Fitted]) != levels {
				t.Fatalf("%+v, %v", out, err)
			}
			if x := out.Values[Slope]; !(math.Abs(x-1) <= 0.01) {
				t.Errorf("gauss %v, %s: slope %v", gauss, estimate, x)
			}
			proven, ok := out.Values[Proven]
			if ok == (gauss && estimate == VaGES) || ok && !(proven > 0.01 && proven <= 1) {
				t.Errorf("gauss %v, %s: %v of what is proven, %v", gauss, estimate, proven, ok)
			}
			most := 0.0
			for _, c := range out.Curves[Bias] {
				most = max(most, c.Y/c.X)
			}
			if limit, _, err := s.proven(estimate); err != nil || ok && !(math.Abs(proven*limit/most-1) <= 1e-12) {
				t.Errorf("gauss %v, %s: %v of what is proven, want %v of %v (%v)", gauss, estimate, proven, most, limit, err)
			}
			if norm, err := s.norm2(); err != nil || gauss && norm >= slices.Min(s.kappa) {
				t.Errorf("‖W‖² is %v, %v, κ %v: p(v) cannot be normalised", norm, err, s.kappa)
			}
		}
	}
}

// Noise of deviation 1 on each weight to an output, and on its bias, moves what it gives at v
// by N(0, 1 + ‖v‖²), for each output and draw by itself.
func TestDirections(t *testing.T) {
	for _, v := range [][]float64{{0, 0}, {3, 4}} {
		s := newScene(v, make([]float64, 2*20), make([]float64, 20), nil)
		all, square, seen := s.directions(7), 0.0, map[float64]bool{}
		for _, d := range all {
			for _, x := range d {
				square += x * x / float64(len(all)*len(d))
				seen[x] = true
			}
		}
		if want := 1 + v[0]*v[0] + v[1]*v[1]; !(math.Abs(square/want-1) <= 0.23) || len(seen) != draws*20 {
			t.Errorf("at %v: %d different values with the mean square %v, want %d with %v", v, len(seen), square, draws*20, want)
		}
	}
}

// What is proven, by its formulas: of W = 2·1 and v = (1, 0), ‖W‖² is 4, vᵀW₀ is 2 and 1 + ‖v‖²
// is 2; the least κ is 4.
func TestProven(t *testing.T) {
	for _, c := range []struct {
		kappa    []float64
		estimate string
		want     float64
	}{{nil, VaES, 4. / 2}, {nil, VaGES, (2 + 2*2 + 2*4) / 2.}, {[]float64{8, 4}, VaES, 2 * 4 / 16.}} {
		s := newScene([]float64{1, 0}, []float64{2, 0, 0, 2}, []float64{0, 0}, c.kappa)
		if got, ok, err := s.proven(c.estimate); err != nil || !ok || !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("κ %v, %s: %v, %v, %v; want %v", c.kappa, c.estimate, got, ok, err, c.want)
		}
	}
}

// A bias that does not follow the divergence is found: one that stays, and one that
// grows faster at last.
func TestFit(t *testing.T) {
	curve := func(y func(x float64) float64) (c []measure.Point) {
		for i := range levels {
			x := math.Pow(10, float64(i)/2-8)
			c = append(c, measure.Point{X: x, Y: y(x)})
		}
		return c
	}
	good := fit(curve(func(x float64) float64 { return 3 * x / (1 + x) }))
	if !(math.Abs(good[Slope]-1) <= 1e-3) || !(math.Abs(good[Bound]-3) <= 1e-3) || good[Over] != 1 {
		t.Errorf("%v", good)
	}
	if stays := fit(curve(func(x float64) float64 { return 1e-6 + x })); stays[Slope] > 0.7 {
		t.Errorf("%v", stays)
	}
	if grows := fit(curve(func(x float64) float64 { return x + x*x })); !(math.Abs(grows[Slope]-1) <= 1e-2) || grows[Over] < 10 {
		t.Errorf("%v", grows)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ model, estimate, most, data, want string }{
		{"units", "dsm", "1", "checkerboard", "want units or gauss, and vaes or vages"},
		{"deep", "vaes", "1", "checkerboard", "want units or gauss"},
		{"units", "vaes", "0", "checkerboard", `--noise-max "0": want a number above 0`},
		{"units", "vaes", "much", "checkerboard", `--noise-max "much"`},
		{"units", "vaes", "1", "nowhere", "nowhere"},
	} {
		in := plan.Computing{Row: plan.Row{Flags: map[string]string{FlagModel: c.model, FlagEstimate: c.estimate, FlagMost: c.most}}, Data: c.data}
		if _, err := Compute(t.Context(), in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
