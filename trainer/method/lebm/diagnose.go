package lebm

import (
	"fmt"
	"math"
)

// astray is the ‖z‖/√d beyond which a chain has come apart: N(0, I) has 1, and
// latents of a trained model a few times that. What is learnt from such latents is
// nothing, and what follows is no number.
const astray = 1000

// Diagnose says which chain has come apart: the prior's before the posterior's, which
// has the prior's slope in it too.
func (m model) Diagnose(report []float64) string {
	if norm := report[priorNormPlace]; !(norm <= astray) {
		return exploded("prior", m.cfg.prior(), norm, "--prior-step-size", "--lr-energy")
	}
	if norm := report[posteriorNormPlace]; !(norm <= astray) {
		return exploded("posterior", m.cfg.PosteriorChain, norm, "--posterior-step-size", "--lr-generator")
	}
	return ""
}

// exploded words it, with the flags that are too large: at once, or in the end.
func exploded(chain string, h Chain, norm float64, size, rate string) string {
	mend := fmt.Sprintf("lower %s from %v, or %s", size, h.Size, rate)
	if h.Annealed {
		mend = "leave --posterior-annealed out, whose first steps are long, or lower " + rate
	}
	return fmt.Sprintf("the %s chain exploded: after %d transitions ‖z‖/√d is %s, where N(0, I) has 1: %s if all was well for long",
		chain, h.Steps, length(norm), mend)
}

// length words a norm.
func length(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "beyond any number of float32"
	}
	return fmt.Sprintf("%.3g", x)
}
