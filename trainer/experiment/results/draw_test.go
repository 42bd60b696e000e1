package results

import (
	"path/filepath"
	"testing"

	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// TestOneValueOnLogarithmicAxes: a curve of one point, or of equal values, has room around it
// on a logarithmic axis as on any other, however small the value is.
func TestOneValueOnLogarithmicAxes(t *testing.T) {
	for _, points := range [][]measure.Point{{{X: 20, Y: 0.5}}, {{X: 1, Y: 1e-9}}, {{X: 10, Y: 0.25}, {X: 20, Y: 0.25}}, {{X: 3, Y: 400}}} {
		s, err := Load(folder(t), made()[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.finished {
			f.status.Measured.Curves = map[string][]measure.Point{"one": points}
		}
		file := filepath.Join(t.TempDir(), "a.png")
		if ok, err := s.plot(plan.Figure{Curve: "one", LogX: true, LogY: true}, file); !ok || err != nil {
			t.Fatal(points, ok, err)
		}
		decoded(t, file)
	}
}
