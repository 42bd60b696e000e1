package sm

import (
	"ebtrain/trainer/setting"
)

// Bounds of what can only be a typing mistake.
const (
	maxHidden = 1 << 16
	maxWidth  = 1 << 12
	maxDepth  = 32
)

func kinds() []Kind           { return []Kind{GRBM, EBM} }
func objectives() []Objective { return []Objective{SSM, DSM, MDSM} }
func traces() []Trace         { return []Trace{Exact, Sliced} }

// Settings adds what a user may change.
func (c *Config) Settings(s *setting.Set) {
	s.Place(setting.Trained)
	setting.Word(s, "model", &c.Net.Kind, kinds(), "the model: grbm (Gaussian RBM) or ebm (visible energy-based model, residual)")
	s.Int("hidden", &c.Net.Hidden, 1, maxHidden, "grbm: hidden units")
	s.Int("width", &c.Net.Width, 1, maxWidth, "ebm: channels of its first layer (64 or 128 in the paper)")
	s.Int("depth", &c.Net.Depth, 1, maxDepth, "ebm: k, which gives 6k convolutional layers")
	s.Float("sample-share", &c.SampleShare, setting.Factor, "ebm: share of the 2,700 steps of annealed Langevin dynamics that samples take")

	s.Place(setting.Losses)
	setting.Word(s, "objective", &c.Objective, objectives(), "loss: ssm (sliced score matching, or its mean: see --trace), dsm (denoising) or mdsm (denoising at many noise levels)")
	setting.Word(s, "trace", &c.Trace, traces(), "ssm: the trace of the score's derivative: exact, which a grbm has in closed form, or sliced, along one random direction")
	c.Noise.Settings(s, &c.Objective)

	s.Place(setting.Optimisers)
	c.Scheduled.Settings(s, "learning rate", "the gradient")

	setting.For(s, "model", &c.Net.Kind, GRBM, "hidden")
	setting.For(s, "model", &c.Net.Kind, EBM, "width", "depth", "sample-share")
	setting.For(s, "objective", &c.Objective, SSM, "trace")
	s.Then(c.validateSettings)
}
