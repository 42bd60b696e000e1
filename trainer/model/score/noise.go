package score

import (
	"errors"

	"ebtrain/trainer/setting"
)

// Noise is what data are perturbed with before a denoising score is matched: one
// level, or a grid of them.
type Noise struct {
	Sigma  float64 // of DSM
	Levels Grid    // of MDSM
	Sigma0 float64 // of MDSM: the score that is matched is −ε/σ₀²
}

// PublishedNoise is BiSM's on Frey faces (DSM) and on MNIST (MDSM) [ALGORITHMS.md
// §2.2, §2.3].
func PublishedNoise() Noise {
	return Noise{Sigma: 0.3, Levels: Grid{Least: 0.1, Most: 3, Spacing: Log}, Sigma0: 0.1}
}

// Settings adds what a user may change; o is the objective that it is for.
func (n *Noise) Settings(s *setting.Set, o *Objective) {
	s.Float("sigma", &n.Sigma, setting.Positive, "dsm: noise level")
	s.Float("sigma-min", &n.Levels.Least, setting.Positive, "mdsm: least noise level")
	s.Float("sigma-max", &n.Levels.Most, setting.Positive, "mdsm: largest noise level")
	setting.Word(s, "sigma-grid", &n.Levels.Spacing, Spacings(), "mdsm: how the levels are spread over the batch: linear or log")
	s.Float("sigma0", &n.Sigma0, setting.Positive, "mdsm: scale of the score that is matched")
	setting.For(s, "objective", o, DSM, "sigma")
	setting.For(s, "objective", o, MDSM, "sigma-min", "sigma-max", "sigma-grid", "sigma0")
}

// Validate says everything that is wrong with it.
func (n Noise) Validate() error {
	return errors.Join(
		setting.Positive.Check("sigma", n.Sigma),
		setting.Positive.Check("sigma0", n.Sigma0),
		n.Levels.Validate(),
	)
}
