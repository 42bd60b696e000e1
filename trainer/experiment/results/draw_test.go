package results

import (
	"path/filepath"
	"testing"

	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// TestOneValue: a curve of one point, or of equal values, has room around it on any axis,
// however small or large the value is.
func TestOneValue(t *testing.T) {
	for _, points := range [][]measure.Point{{{X: 20, Y: 0.5}}, {{X: 1, Y: 1e-9}}, {{X: 10, Y: 0.25}, {X: 20, Y: 0.25}}, {{X: 3, Y: 400}}, {{X: 3, Y: 1e20}}} {
		s, err := Load(folder(t), made()[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.finished {
			f.status.Measured.Curves = map[string][]measure.Point{"one": points}
		}
		file := filepath.Join(t.TempDir(), "a.png")
		for _, logarithmic := range []bool{true, false} {
			if ok, err := s.plot(plan.Figure{Curve: "one", LogX: logarithmic, LogY: logarithmic}, file); !ok || err != nil {
				t.Fatal(points, ok, err)
			}
			decoded(t, file)
		}
	}
}
