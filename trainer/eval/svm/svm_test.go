package svm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"ebtrain/trainer/eval"
)

// clouds are n examples around a centre for each class, the centres apart from
// each other by about apart standard deviations. Feature j is multiplied by
// scale(j).
func clouds(seed uint64, n, dim, classes int, apart float64, scale func(j int) float64) Examples {
	rng := rand.New(rand.NewPCG(seed, 1))
	centres := make([]float64, classes*dim)
	for i := range centres {
		centres[i] = apart * rng.NormFloat64()
	}
	e := Examples{X: make([]float64, n*dim), Dim: dim, Labels: make([]int, n)}
	for i := range n {
		c := i % classes
		e.Labels[i] = c
		for j := range dim {
			e.X[i*dim+j] = scale(j) * (centres[c*dim+j] + rng.NormFloat64())
		}
	}
	return e
}

func same(int) float64 { return 1 }

// primal is P by its definition, and its gradient in (w, b).
func primal(e Examples, class int, c float64, wb []float64) (value float64, grad []float64) {
	grad = slices.Clone(wb)
	value = floats.Dot(wb, wb) / 2
	for i, label := range e.Labels {
		y := -1.0
		if label == class {
			y = 1
		}
		x := append(slices.Clone(e.row(i)), 1)
		if xi := 1 - y*floats.Dot(wb, x); xi > 0 {
			value += c * xi * xi
			floats.AddScaled(grad, -2*c*y*xi, x)
		}
	}
	return value, grad
}

// dual is the dual's value at α = 2C·max(0, 1 − margin), by its definition.
func dual(e Examples, class int, c float64, wb []float64) float64 {
	sum := make([]float64, e.Dim+1)
	value := 0.0
	for i, label := range e.Labels {
		y := -1.0
		if label == class {
			y = 1
		}
		x := append(slices.Clone(e.row(i)), 1)
		alpha := 2 * c * max(0, 1-y*floats.Dot(wb, x))
		value += alpha - alpha*alpha/(4*c)
		floats.AddScaled(sum, alpha*y, x)
	}
	return value - floats.Dot(sum, sum)/2
}

func weights(m *Model, class int) []float64 {
	return append(slices.Clone(m.W[class*m.Dim:(class+1)*m.Dim]), m.B[class])
}

var problems = []struct {
	name string
	e    Examples
	c    float64
}{
	{"overlapping", clouds(1, 300, 5, 3, 0.7, same), 1},
	{"separable", clouds(2, 200, 8, 4, 20, same), 1},
	{"nearly hard margin", clouds(3, 100, 4, 2, 3, same), 1e4},
	{"weak", clouds(4, 100, 4, 2, 1, same), 1e-6},
	{"more features than examples", clouds(5, 20, 50, 2, 1, same), 1},
	{"features from 1e-4 to 1e4", clouds(6, 200, 9, 3, 1, func(j int) float64 { return math.Pow(10, float64(j-4)) }), 1},
	{"all tiny", clouds(7, 200, 3, 2, 1, func(int) float64 { return 1e-6 }), 1},
	{"all huge", clouds(8, 200, 3, 2, 1, func(int) float64 { return 1e6 }), 1},
	{"a feature that is always 0", clouds(9, 100, 3, 2, 1, func(j int) float64 { return float64(j % 2) }), 1},
}

// The gradient, computed by another program from the definition, vanishes, and
// the duality gap is nothing: that is the minimum, whatever found it.
func TestOptimality(t *testing.T) {
	for _, tt := range problems {
		t.Run(tt.name, func(t *testing.T) {
			classes := slices.Max(tt.e.Labels) + 1
			m, err := Fit(tt.e, classes, Options{C: tt.c})
			if err != nil {
				t.Fatal(err)
			}
			for k := range classes {
				wb := weights(m, k)
				value, grad := primal(tt.e, k, tt.c, wb)
				_, start := primal(tt.e, k, tt.c, make([]float64, len(wb)))
				norm, first := floats.Norm(grad, 2), floats.Norm(start, 2)
				if !(norm <= 1.01e-8*first) {
					t.Errorf("class %d: gradient %.3g from %.3g", k, norm, first)
				}
				gap := value - dual(tt.e, k, tt.c, wb)
				if !(gap >= -1e-12*value && gap <= 1.01e-8*value) {
					t.Errorf("class %d: duality gap %g of %g", k, gap, value)
				}
				t.Logf("class %d: gradient %.1e, gap %.1e", k, norm/first, gap/value)
			}
		})
	}
}

// The minimum by plain gradient descent in steps of 1/L, which knows nothing but
// P's definition.
func TestAgainstGradientDescent(t *testing.T) {
	e := clouds(11, 60, 3, 3, 0.8, same)
	m, err := Fit(e, 3, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lipschitz := 1 + 2*(float64(e.N())+floats.Dot(e.X, e.X))
	for k := range 3 {
		wb := make([]float64, 4)
		for range 20000 {
			_, grad := primal(e, k, 1, wb)
			floats.AddScaled(wb, -1/lipschitz, grad)
		}
		if d := floats.Distance(wb, weights(m, k), math.Inf(1)); d > 1e-7 {
			t.Errorf("class %d: %v, by gradient descent %v", k, weights(m, k), wb)
		}
	}
}

// The minimum over all sets of examples with a loss: for each, the quadratic is
// solved, and is the answer if exactly those examples have a loss there.
func bruteForce(t *testing.T, e Examples, class int, c float64) []float64 {
	t.Helper()
	n, d := e.N(), e.Dim+1
	var found []float64
	for set := range 1 << n {
		h, g := mat.NewSymDense(d, nil), mat.NewVecDense(d, nil)
		for j := range d {
			h.SetSym(j, j, 1)
		}
		for i := range n {
			if set>>i&1 == 1 {
				x := mat.NewVecDense(d, append(slices.Clone(e.row(i)), 1))
				h.SymRankOne(h, 2*c, x)
				y := -1.0
				if e.Labels[i] == class {
					y = 1
				}
				g.AddScaledVec(g, 2*c*y, x)
			}
		}
		var chol mat.Cholesky
		w := mat.NewVecDense(d, nil)
		if !chol.Factorize(h) || chol.SolveVecTo(w, g) != nil {
			t.Fatal("a Hessian that is not positive definite")
		}
		if losses(e, class, w.RawVector().Data) == set {
			if found != nil {
				t.Fatalf("two minima of a strongly convex function: %v and %v", found, w.RawVector().Data)
			}
			found = w.RawVector().Data
		}
	}
	if found == nil {
		t.Fatal("no set of examples is its own")
	}
	return found
}

// losses is the set of examples with a loss.
func losses(e Examples, class int, wb []float64) (set int) {
	for i, label := range e.Labels {
		y := -1.0
		if label == class {
			y = 1
		}
		if y*(floats.Dot(e.row(i), wb[:e.Dim])+wb[e.Dim]) < 1 {
			set |= 1 << i
		}
	}
	return set
}

func TestAgainstBruteForce(t *testing.T) {
	for seed := range uint64(5) {
		for _, apart := range []float64{0.5, 4} {
			e := clouds(20+seed, 10, 2, 2, apart, same)
			m, err := Fit(e, 2, Options{C: 1, Tolerance: 1e-13})
			if err != nil {
				t.Fatal(err)
			}
			for k := range 2 {
				if want := bruteForce(t, e, k, 1); floats.Distance(weights(m, k), want, math.Inf(1)) > 1e-11 {
					t.Errorf("seed %d, class %d: %v, want %v", seed, k, weights(m, k), want)
				}
			}
		}
	}
}

// One example of each of two classes at ±a: by symmetry b = 0, and
// w + 4C·a·(a·w − 1) = 0 gives w = 4Ca/(1 + 4Ca²).
func TestByHand(t *testing.T) {
	for _, a := range []float64{0.01, 1, 100} {
		m, err := Fit(Examples{[]float64{-a, a}, 1, []int{0, 1}}, 2, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := 4 * a / (1 + 4*a*a); !(math.Abs(m.W[1]-want) <= 1e-9*want) || !(math.Abs(m.B[1]) <= 1e-12) {
			t.Errorf("at ±%v: w %v, b %v; want %v and 0", a, m.W[1], m.B[1], want)
		}
	}
}

// fit is Fit, solved as far as rounding allows.
func fit(t *testing.T, e Examples, c float64) *Model {
	t.Helper()
	m, err := Fit(e, slices.Max(e.Labels)+1, Options{C: c, Tolerance: 1e-13})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Classes on the two diagonals of a square: the best line is none, and the
// gradient is nothing but rounding from the start.
func TestNothingToLearn(t *testing.T) {
	for _, a := range []float64{1, 0.1, 1e5 / 3} {
		m, err := Fit(Examples{[]float64{a, a, -a, -a, a, -a, -a, a}, 2, []int{0, 0, 1, 1}}, 2, Options{})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "weights", m.W, make([]float64, 4))
		near(t, "intercepts", m.B, make([]float64, 2))
	}
}

// What the objective does not see, the solution does not see: turned features,
// examples twice at half the weight; a feature that is always 1 is a second
// intercept.
func TestInvariance(t *testing.T) {
	e := clouds(31, 120, 4, 2, 0.5, same)
	base := fit(t, e, 1)
	var q mat.QR
	q.Factorize(mat.NewDense(4, 4, clouds(32, 4, 4, 2, 1, same).X))
	var turn, x, w mat.Dense
	q.QTo(&turn)
	x.Mul(mat.NewDense(e.N(), 4, e.X), &turn)
	turned := fit(t, Examples{x.RawMatrix().Data, 4, e.Labels}, 1)
	w.Mul(mat.NewDense(2, 4, base.W), &turn)
	near(t, "turned", turned.W, w.RawMatrix().Data)
	near(t, "turned", turned.B, base.B)

	twice := fit(t, Examples{append(slices.Clone(e.X), e.X...), 4, append(slices.Clone(e.Labels), e.Labels...)}, 0.5)
	near(t, "twice", twice.W, base.W)
	near(t, "twice", twice.B, base.B)

	ones := Examples{Dim: 5, Labels: e.Labels}
	for i := range e.N() {
		ones.X = append(append(ones.X, e.row(i)...), 1)
	}
	m := fit(t, ones, 1)
	near(t, "constant feature", []float64{m.W[4], m.W[9]}, m.B)
	if math.Abs(2*m.B[1]-base.B[1]) < 1e-6 {
		t.Errorf("two intercepts of %v are one of %v: the intercept is not regularised", m.B[1], base.B[1])
	}
}

func near(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if d := floats.Distance(got, want, math.Inf(1)); !(d <= 1e-10) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}

// Features are taken as they are: scaled ones are another problem, whose solution
// is better there than the first one's carried over, and not by rounding.
func TestScale(t *testing.T) {
	e := clouds(33, 120, 4, 2, 0.5, same)
	base := fit(t, e, 1)
	for _, s := range []float64{1e-5, 0.1, 10, 1e5} {
		scaled := Examples{Dim: 4, Labels: e.Labels, X: make([]float64, len(e.X))}
		floats.ScaleTo(scaled.X, s, e.X)
		m := fit(t, scaled, 1)
		carried := weights(base, 0)
		floats.Scale(1/s, carried[:4])
		value, _ := primal(scaled, 0, 1, weights(m, 0))
		other, _ := primal(scaled, 0, 1, carried)
		if !(value < other-1e-9*other) {
			t.Errorf("scale %g: P is %v, and %v at the solution of the unscaled problem", s, value, other)
		}
	}
}

func TestDeterministic(t *testing.T) {
	e := clouds(41, 400, 20, 5, 0.5, same)
	a, err := Fit(e, 5, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b, err := Fit(e, 5, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.W, b.W) || !slices.Equal(a.B, b.B) {
			t.Fatal("equal examples give other weights")
		}
	}
}

func TestPredict(t *testing.T) {
	e := clouds(51, 400, 6, 4, 20, same)
	m, err := Fit(e, 4, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := m.Accuracy(e); err != nil || a != 1 {
		t.Errorf("accuracy on separable classes %v, %v", a, err)
	}
	e.Labels = slices.Clone(e.Labels)
	e.Labels[7] = (e.Labels[7] + 1) % 4
	if a, err := m.Accuracy(e); err != nil || a != 399.0/400 {
		t.Errorf("accuracy with one wrong label %v, %v", a, err)
	}
	for name, err := range map[string]error{
		"half a row": second(m.Predict(make([]float64, 7))),
		"NaN":        second(m.Predict([]float64{0, 0, math.NaN(), 0, 0, 0})),
		"no labels":  second(m.Accuracy(Examples{Dim: 6})),
		"narrow":     second(m.Accuracy(Examples{make([]float64, 12), 3, []int{0, 1, 2, 3}})),
		"wide rows":  second(m.Accuracy(Examples{make([]float64, 7), 7, []int{0}})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestErrors(t *testing.T) {
	ok := clouds(61, 20, 2, 2, 1, same)
	with := func(f func(*Examples)) Examples {
		e := Examples{slices.Clone(ok.X), ok.Dim, slices.Clone(ok.Labels)}
		f(&e)
		return e
	}
	set := func(v float64) Examples { return with(func(e *Examples) { e.X[2*5+1] = v }) }
	for _, tt := range []struct {
		name    string
		e       Examples
		classes int
		o       Options
		want    string
	}{
		{"NaN", set(math.NaN()), 2, Options{}, "feature 1 of example 5 is NaN"},
		{"infinity", set(math.Inf(-1)), 2, Options{}, "feature 1 of example 5 is -Inf"},
		{"overflow", set(1e200), 2, Options{}, "too large"},
		{"one class", with(func(e *Examples) { clear(e.Labels) }), 2, Options{}, "all 20 examples are of class 0"},
		{"one class of three, not the first", with(func(e *Examples) {
			for i := range e.Labels {
				e.Labels[i] = 1
			}
		}), 3, Options{}, "all 20 examples are of class 1"},
		{"class missing", ok, 3, Options{}, "class 2 of 3 has no example"},
		{"label too large", ok, 1 + 1, Options{C: -1}, "C -1"},
		{"label", with(func(e *Examples) { e.Labels[3] = 2 }), 2, Options{}, "label of example 3 is 2, expected 0 to 1"},
		{"one class asked for", ok, 1, Options{}, "1 class"},
		{"no examples", Examples{Dim: 2}, 2, Options{}, "0 examples"},
		{"cut", with(func(e *Examples) { e.X = e.X[1:] }), 2, Options{}, "39 values, expected 40"},
		{"tolerance", ok, 2, Options{Tolerance: 1}, "tolerance 1"},
	} {
		_, err := Fit(tt.e, tt.classes, tt.o)
		if _, ok := errors.AsType[*eval.NotFiniteError](err); ok != (tt.name == "NaN" || tt.name == "infinity") {
			t.Errorf("%s: %v is of numbers of a model that are not finite: %v", tt.name, err, ok)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") && tt.name != "overflow" {
			t.Errorf("%s: error %v, want one sentence with %q", tt.name, err, tt.want)
		}
	}
}

func ExampleFit() {
	e := Examples{X: []float64{0, 1, 4, 5, 9, 10}, Dim: 1, Labels: []int{0, 0, 1, 1, 1, 1}}
	m, err := Fit(e, 2, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Predict([]float64{0.5, 7}))
	// Output: [0 1] <nil>
}

// What was standardised has the mean and the deviation of its examples, whatever their
// scale was; a feature without any spread tells nothing, to anybody.
func TestStandardise(t *testing.T) {
	draw := func() (seen, asked Examples) {
		scale := func(j int) float64 { return []float64{1, 1e-6, 1e4}[j] }
		return clouds(7, 300, 3, 3, 2, scale), clouds(8, 50, 3, 3, 2, scale)
	}
	seen, asked := draw()
	const constant = 1
	for _, e := range []Examples{seen, asked} {
		for i := range e.N() {
			e.X[i*3+constant] = 0.1
		}
	}
	asked.X[constant] = 7 // not seen to differ, so it cannot tell
	was, other := slices.Clone(seen.X), slices.Clone(asked.X)
	seen.Standardise(asked)
	for j := range 3 {
		var sum, square float64
		for i := range 300 {
			sum, square = sum+was[i*3+j], square+was[i*3+j]*was[i*3+j]
		}
		mean := sum / 300
		sd := math.Sqrt(square/300 - mean*mean)
		for _, x := range []struct{ got, was []float64 }{{seen.X, was}, {asked.X, other}} {
			for i := j; i < len(x.was); i += 3 {
				want := (x.was[i] - mean) / sd
				if j == constant {
					want = 0
				}
				if !(math.Abs(x.got[i]-want) < 1e-6) {
					t.Fatalf("feature %d of example %d of %d is %v, want %v", j, i/3, len(x.was)/3, x.got[i], want)
				}
			}
		}
	}
}
