package score

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Objective names what is minimised of a score; a method may have others.
type Objective string

const (
	DSM  Objective = "dsm"  // denoising, at one noise level
	SSM  Objective = "ssm"  // on the data themselves, sliced, or its mean over directions
	MDSM Objective = "mdsm" // denoising at a grid of noise levels
)

// LeastBatch is how many samples the global batch has at least: of MDSM one for each end of
// the grid of noise levels.
func (o Objective) LeastBatch() int {
	if o == MDSM {
		return leastOfGrid
	}
	return 1
}

// Of is the noise level of what the score is matched to under o, which a sampler's last
// step takes away: none where it is that of the data themselves.
func (n Noise) Of(o Objective) float64 {
	switch o {
	case MDSM:
		return n.Sigma0
	case DSM:
		return n.Sigma
	}
	return 0
}

// Perturbed is v with the noise eps that DSM or MDSM adds, the latter at levels, (B).
func (n Noise) Perturbed(c *nn.Context, o Objective, v, eps, levels graph.ID) graph.ID {
	if o == DSM {
		return c.Add(v, c.Scale(eps, n.Sigma))
	}
	return Blur(c, v, eps, levels)
}
