package fisher

import (
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// Report has the loss, which is minus the estimate of the divergence; with a q that
// takes steps also its loss in the last of them, which is KL(q(h|v) ‖ p(h|v)) but for a
// constant. Both are means over the global batch.
func (m Model) Report() []algo.Column {
	names, same := []string{"loss", algo.ReportStop}, []string{"grad_critic"}
	if m.lowers() > 0 {
		names, same = append(names, "posterior"), append(same, "grad_posterior")
	}
	return algo.Columns(append(names, same...), "loss", "posterior", "grad_critic")
}

// lowers is the number of steps on q in a step.
func (m Model) lowers() int {
	if m.cfg.Estimator == Exact {
		return 0
	}
	return m.cfg.LowerSteps
}

// Feeder fills the schedules of both optimisers.
func (m Model) Feeder(p exec.Program) func(step int64, epoch int) {
	upper, lower := m.cfg.Adam.Feeder(p), m.cfg.posterior().Feeders(p, m.lowers())
	return func(step int64, epoch int) {
		upper(step, epoch)
		lower(step, epoch)
	}
}

// Step builds one training step.
func (m Model) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("fisher", world, func(c *nn.Context) { m.build(c, batch) })
}

// step is a training step under construction.
type step struct {
	scene
	means, same []graph.ID // of the report, besides the loss: to be averaged over ranks, and equal on all
}

func (m Model) build(c *nn.Context, batch int) {
	s := &step{scene: m.scene(c, batch)}
	if m.cfg.Estimator == Variational {
		s.lower()
	}
	loss, grad := s.upper()
	s.means = append([]graph.ID{loss, c.Input(algo.InputStop, graph.T(c.DType))}, s.means...)
	s.same = append([]graph.ID{grad}, s.same...)
	algo.WriteReport(s.Context, s.means, s.same)
}

// lower takes the K steps on q, each on the same samples with new draws.
func (s *step) lower() {
	adam := s.m.cfg.posterior()
	for k := range s.m.lowers() {
		s.Builder.Scope(fmt.Sprintf("lower %d", k), func() {
			ps := s.Params(grbm.PosteriorScope)
			q := s.units.Infer(s.Context, nn.IDs(ps), s.v)
			h := q.Sample(s.Context, s.Draw(s.key, q.Dist(), philox.Hidden, lowerPlace+uint16(k), s.hidden(1)))
			loss := s.Mean(latent.KL.Lower(s.Context, s.units, s.theta, q, s.v, h))
			grads, norm := optim.Averaged(s.Context, fmt.Sprintf("posterior %d", k), loss, ps)
			adam.StepN(s.Context, k, ps, grads)
			s.means, s.same = []graph.ID{loss}, []graph.ID{norm}
		})
	}
}

// upper takes the critic's step.
func (s *step) upper() (loss, grad graph.ID) {
	f := s.critic.at(s.Context, s.v)
	eps := s.Draw(s.key, graph.Rademacher, philox.Projection, 0, s.Type(s.v))
	trace := s.Sum(s.Mul(eps, s.Pushforward(f, s.v, eps)), 1)
	loss = s.Neg(s.Mean(objective(s.Context, s.score(), f, trace)))
	ps := s.Params(criticScope)
	grads, grad := optim.Averaged(s.Context, "critic", loss, ps)
	s.m.cfg.Adam.Step(s.Context, ps, grads)
	return loss, grad
}
