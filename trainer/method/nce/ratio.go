package nce

import (
	"fmt"
	"math"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// ratio is r(u) = −F(u) − a − log N(u; 0, I), (B). The variational kind estimates
// −F(u) with so many draws h, which are named by sub.
func (s *step) ratio(u graph.ID, draws int, sub uint16) graph.ID {
	free := s.Neg(s.p.FreeEnergy(s.Context, u))
	if s.m.cfg.Variational {
		free = s.estimate(u, draws, sub)
	}
	visible := s.Shape(s.p.B).At(0)
	normal := s.Shift(s.Scale(s.Sum(s.Square(u), 1), -0.5), -float64(visible)/2*math.Log(2*math.Pi))
	return s.Sub(s.Sub(free, s.a), normal)
}

// estimate is the logarithm of the mean over L draws h ~ q(h|u), constants, of
// exp(−E(u,h))/q(h|u), (B).
func (s *step) estimate(u graph.ID, draws int, sub uint16) graph.ID {
	n, hidden := s.Batch(u), s.m.Hidden
	uniform := s.Draw(s.key, graph.Uniform, philox.Hidden, sub, graph.T(s.DType, n, draws, hidden))
	logits := s.Reshape(s.q.Logits(s.Context, u), graph.D(n, 1, hidden))
	h := s.StopGrad(grbm.Hard(s.Context, logits, uniform))
	return s.Shift(s.LogSumExp(s.p.LogWeights(s.Context, s.q, u, h), 1), -math.Log(float64(draws)))
}

// lower takes the steps on q, each down the gradient of
//
//	⟨E(v,h) + log q(h|v)⟩,  h ~ q(h|v) relaxed to (0, 1),
//
// which is KL(q(h|v) ‖ p(h|v)) but for F(v). The upper level sees a constant q.
func (s *step) lower() {
	c := s.Context
	s.m.DeclarePosterior(c)
	adam := s.m.cfg.posterior()
	for k := range s.m.lowers() {
		c.Builder.Scope(fmt.Sprintf("lower%d", k), func() {
			ps := c.Params(grbm.PosteriorScope)
			logits := grbm.PosteriorOf(nn.IDs(ps)).Logits(c, s.v)
			uniform := c.Draw(s.key, graph.Uniform, philox.Hidden, uint16(k), c.Type(logits))
			h := grbm.Soft(c, logits, grbm.Logistic(c, uniform), s.m.cfg.Temperature)
			loss := c.Mean(c.Add(s.p.Energy(c, s.v, h), grbm.LogProb(c, logits, h)))
			grads, norm := optim.Averaged(s.Context, fmt.Sprintf("posterior %d", k), loss, ps)
			adam.StepN(c, k, ps, grads)
			s.means, s.same = []graph.ID{loss}, []graph.ID{norm}
		})
	}
	ids := nn.IDs(c.Params(grbm.PosteriorScope))
	for i, id := range ids {
		ids[i] = c.StopGrad(id) // the steps depend on the model
	}
	s.q = grbm.PosteriorOf(ids)
}
