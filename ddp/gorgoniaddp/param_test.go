package gorgoniaddp_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"ebtrain/ddp/gorgoniaddp"
)

func TestVanillaSolverStepsParam(t *testing.T) {
	w, g := []float32{1, -2, 3, 0.5}, []float32{4, 8, -16, 0}
	step(t, gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(0.125)), newParam(t, []int{2, 2}, w, g))
	for i, want := range []float32{0.5, -3, 5, 0.5} { // w − η·g, exact
		if w[i] != want || g[i] != 0 {
			t.Errorf("element %d: value %v, gradient %v, want %v and 0", i, w[i], g[i], want)
		}
	}
}

func TestAdamSolverStepsParam(t *testing.T) {
	t.Run("float64", func(t *testing.T) { adam[float64](t, 1e-14) })
	t.Run("float32", func(t *testing.T) { adam[float32](t, 1e-6) })
}

// adam compares three steps with [Kingma & Ba 2015, Algorithm 1], in float64.
func adam[T float32 | float64](t *testing.T, tol float64) {
	const eta, beta1, beta2, eps = 0.1, 0.9, 0.999, 1e-8
	w, g := []T{1, -1, 0.25}, make([]T, 3)
	p := newParam(t, []int{3}, w, g)
	solver := gorgonia.NewAdamSolver(gorgonia.WithLearnRate(eta))
	want, m, v := []float64{1, -1, 0.25}, make([]float64, 3), make([]float64, 3)
	for k := 1; k <= 3; k++ {
		for i := range g {
			grad := math.Sin(float64(3*k + i))
			g[i] = T(grad) // a Solver leaves the gradient zero: write it anew
			m[i] = beta1*m[i] + (1-beta1)*grad
			v[i] = beta2*v[i] + (1-beta2)*grad*grad
			mHat := m[i] / (1 - math.Pow(beta1, float64(k)))
			vHat := v[i] / (1 - math.Pow(beta2, float64(k)))
			want[i] -= eta * mHat / (math.Sqrt(vHat) + eps)
		}
		step(t, solver, p)
		for i := range w {
			if d := math.Abs(float64(w[i]) - want[i]); !(d <= tol) {
				t.Errorf("step %d, element %d: got %v, want %v ± %g", k, i, w[i], want[i], tol)
			}
		}
	}
}

// Every Solver changes the caller's own memory, and goes on doing so: all of gorgonia's
// but those that the comment of Param excepts.
func TestSolversStepParam(t *testing.T) {
	t.Run("float64", func(t *testing.T) {
		solvers := anyTypeSolvers()
		solvers["barzilai-borwein"] = func() gorgonia.Solver { return gorgonia.NewBarzilaiBorweinSolver() }
		descend[float64](t, solvers)
	})
	t.Run("float32", func(t *testing.T) { descend[float32](t, anyTypeSolvers()) })
}

// anyTypeSolvers are those that step parameters of either type.
func anyTypeSolvers() map[string]func() gorgonia.Solver {
	return map[string]func() gorgonia.Solver{
		"vanilla":  func() gorgonia.Solver { return gorgonia.NewVanillaSolver() },
		"momentum": func() gorgonia.Solver { return gorgonia.NewMomentum() },
		"rmsprop":  func() gorgonia.Solver { return gorgonia.NewRMSPropSolver() },
		"adagrad":  func() gorgonia.Solver { return gorgonia.NewAdaGradSolver() },
		"adam":     func() gorgonia.Solver { return gorgonia.NewAdamSolver() },
	}
}

// descend checks that three steps of each Solver on Σ (i+1)·exp(wᵢ) lower every element,
// as this falls in all of them wherever one is.
func descend[T float32 | float64](t *testing.T, solvers map[string]func() gorgonia.Solver) {
	for name, solver := range solvers {
		for _, shape := range [][]int{{}, {1}, {3}, {2, 3}} {
			t.Run(fmt.Sprint(name, shape), func(t *testing.T) { descends[T](t, solver(), shape) })
		}
	}
}

func descends[T float32 | float64](t *testing.T, solver gorgonia.Solver, shape []int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	w, g := make([]T, n), make([]T, n)
	p := newParam(t, shape, w, g)
	for k := range 3 {
		before := slices.Clone(w)
		for i := range g {
			g[i] = T(i+1) * T(math.Exp(float64(w[i])))
		}
		step(t, solver, p)
		for i := range w {
			if !(w[i] < before[i]) {
				t.Errorf("step %d: element %d went from %v to %v", k, i, before[i], w[i])
			}
			if g[i] != 0 {
				t.Errorf("step %d: gradient %d is left %v, want 0", k, i, g[i])
			}
		}
	}
}

// The reason why the comment of Param excepts it. If this fails, gorgonia has been repaired.
func TestGorgoniaBarzilaiBorweinWantsFloat64(t *testing.T) {
	p := newParam(t, []int{1}, []float32{1}, []float32{1})
	if err := gorgonia.NewBarzilaiBorweinSolver().Step([]gorgonia.ValueGrad{p}); err == nil {
		t.Error("Barzilai and Borwein's Solver steps float32 after all")
	}
}

func TestNewParamErrors(t *testing.T) {
	for _, tc := range []struct {
		shape       []int
		value, grad int
		want        string
	}{
		{[]int{2, 3}, 5, 6, `parameter "w": want 6 elements for shape [2 3], got 5 values and 6 gradients`},
		{[]int{2, 3}, 6, 7, `got 6 values and 7 gradients`},
		{nil, 0, 0, `want 1 elements for shape []`},
		{[]int{2, 0}, 0, 0, `want every dimension >= 1, got shape [2 0]`},
		{[]int{-2, -3}, 6, 6, `want every dimension >= 1, got shape [-2 -3]`},
	} {
		_, err := gorgoniaddp.NewParam("w", tc.shape, make([]float32, tc.value), make([]float32, tc.grad))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("shape %v: got %v, want ...%s", tc.shape, err, tc.want)
		}
	}
}

func newParam[T float32 | float64](t *testing.T, shape []int, value, grad []T) *gorgoniaddp.Param {
	t.Helper()
	p, err := gorgoniaddp.NewParam("w", shape, value, grad)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "w" {
		t.Fatalf("name is %q, want w", p.Name())
	}
	return p
}

func step(t *testing.T, s gorgonia.Solver, p gorgonia.ValueGrad) {
	t.Helper()
	if err := s.Step([]gorgonia.ValueGrad{p}); err != nil {
		t.Fatal(err)
	}
}
