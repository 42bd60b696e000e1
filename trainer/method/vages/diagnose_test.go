package vages

import (
	"math"
	"strings"
	"testing"

	"ebtrain/trainer/algo"
)

// Where latents are refined and a loss is no number, the refinement is named; elsewhere
// the loop says which number it is.
func TestDiagnose(t *testing.T) {
	deep, machine := mnist(), frey()
	deep.Refine.Rate = 0.03
	for _, tt := range []struct {
		c      *Config
		report []float64
		want   string
	}{
		{deep, []float64{1, 2, 0}, ""},
		{deep, []float64{1, math.NaN(), 0}, "scaled is NaN: lower --refine-rate from 0.03"},
		{deep, []float64{math.Inf(1), 2, 0}, "upper is +Inf: lower --refine-rate from 0.03"},
		{machine, []float64{math.NaN(), 2, 0}, ""},
	} {
		m, ok := tt.c.Model().(algo.Diagnosing)
		if !ok {
			t.Fatalf("%T does not diagnose", tt.c.Model())
		}
		if got := m.Diagnose(tt.report); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.report, got, tt.want)
		}
	}
}
