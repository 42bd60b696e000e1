package compare

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/eval/feature"
)

// tied are points of three columns, of which the second follows the first, on scales that
// are far apart.
func tied(n int, from uint32) (x []float32) {
	for i := range n {
		var u [3]float64
		philox.Name{Seed: 8, Purpose: philox.Testing, Sample: from + uint32(i)}.Normal(u[:])
		x = append(x, float32(u[0]), float32(1e4+1e3*(u[0]+0.3*u[1])), float32(1e-3*u[2]))
	}
	return x
}

// Points are compared by their values: equal sets are near each other, and sets whose columns
// have nothing to do with each other are not; on whatever scale columns are.
func TestPoints(t *testing.T) {
	const n = 600
	size := feature.Size{C: 1, H: 1, W: 3}
	all := []string{Frechet, KID, PRDC, SWD, C2ST, Neighbours}
	reference := Set{Name: "reference", X: tied(n, 0)}
	floor, shuffled := tied(n, 10_000), control.ShuffledColumns(reference.X, 3, 1)
	scaled := func(x []float32) []float32 {
		out := slices.Clone(x)
		for i := range out {
			if i%3 == 0 {
				out[i] *= 1024 // exact
			}
		}
		return out
	}
	of := func(reference, x []float32) map[string]float64 {
		t.Helper()
		j := judge(t, Config{Size: size, Measures: all}, Set{X: reference})
		values, notes, err := j.Of(t.Context(), Set{Name: "set", X: x})
		if err != nil || len(notes) > 0 {
			t.Fatal(notes, err)
		}
		m := map[string]float64{}
		for _, v := range values {
			m[v.Row] = v.Value
		}
		return m
	}
	good, bad := of(reference.X, floor), of(reference.X, shuffled)
	for _, row := range Rows() {
		g, ok := good[row.Name]
		if !ok || row.Measure == Neighbours || row.Name == "recall" { // which see nothing of it
			continue
		}
		if b := bad[row.Name]; !row.Better.Beats(g, b) {
			t.Errorf("%s: %v of points of the same kind, %v of shuffled columns", row.Name, g, b)
		}
	}
	if len(good) != 10 || !(good["c2st-auc"] < 0.65) || !(bad["c2st-auc"] > 0.75) || !(good["frechet"] < 0.1) || !(bad["frechet"] > 0.5) {
		t.Errorf("good %v, bad %v", good, bad)
	}
	// Only their standard deviation counts: nothing changes with a column's scale.
	for row, v := range of(scaled(reference.X), scaled(floor)) {
		if !(math.Abs(v-good[row]) <= 1e-3*(1+math.Abs(v))) {
			t.Errorf("%s: %v, on another scale %v", row, good[row], v)
		}
	}
}

// A column of one value has no scale, and what leaves it is seen.
func TestConstantColumn(t *testing.T) {
	s := scaleOf((&Judge{c: Config{Size: feature.Size{C: 1, H: 1, W: 2}}}).matrix([]float32{1, 5, 3, 5}, 2))
	if got := s.of([]float32{3, 5, 1, 7}); !slices.Equal(got, []float32{1, 0, -1, 2}) {
		t.Errorf("%v of %+v", got, s)
	}
}

// What points lack is said of points.
func TestFewPoints(t *testing.T) {
	c := Config{Size: feature.Size{C: 1, H: 1, W: 3}, Measures: []string{Frechet}}
	if _, err := New(t.Context(), c, Set{X: tied(20, 0)}); err == nil || err.Error() != "the reference holds 20 points, and a Fréchet distance wants at least 100" {
		t.Errorf("error %v", err)
	}
	j := judge(t, c, Set{X: tied(200, 0)})
	for n, want := range map[int]string{20: "set: 20 points, and a Fréchet distance wants at least 100", 1: "set: 1 point, and a comparison wants at least 2"} {
		if _, notes, err := j.Of(t.Context(), Set{Name: "set", X: tied(n, 9)}); err != nil || !slices.Equal(notes, []string{want}) {
			t.Errorf("%d: notes %q, %v, want %q", n, notes, err, want)
		}
	}
}
