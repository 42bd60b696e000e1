package vages

import (
	"fmt"
	"math"
)

// Diagnose names the refinement where a report is no longer of numbers: with a rate one
// place too large on the published grid all runs end so, whatever their learning rates.
func (t trainee) Diagnose(report []float64) string {
	r := t.cfg.Refine
	if r.Steps == 0 {
		return ""
	}
	for i, v := range report {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("%s is %v: lower --refine-rate from %v, with which latents come apart in %d steps where it is too large for their number, or --lr if all was well for long",
				t.Report()[i].Name, v, r.Rate, r.Steps)
		}
	}
	return ""
}
