package results

import (
	"testing"

	"ebtrain/trainer/experiment/plan"
)

// TestMissing: what an experiment is to show and its cells have not is said, of which rows;
// nothing is asked of what diverged.
func TestMissing(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	s.e.Pictures = append(s.e.Pictures, plan.Picture{Title: "Faces", Glob: "faces.png", Rows: []string{"dsm", "wild"}})
	const want = `not kept with the cells, so not shown: the plot "Nothing"; "Density" of n-5; "Lines" of n-5; "Faces" of dsm`
	if got, err := s.missing(); got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	s.e.Figures, s.e.Pictures = s.e.Figures[:1], []plan.Picture{{Title: "Density", Glob: "density-*.png", Rows: []string{"dsm"}}}
	if got, err := s.missing(); got != "" || err != nil {
		t.Errorf("nothing is missing: %q, %v", got, err)
	}
}
