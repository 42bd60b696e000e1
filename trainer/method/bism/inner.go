package bism

import (
	"fmt"

	"ebtrain/ddp"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/optim"
)

// kept takes the K steps of the lower level that last.
func (s *step) kept(phi optim.State) optim.State {
	for i := range s.cfg.LowerSteps {
		phi = s.inner(fmt.Sprintf("lower %d", i), phi, i, algo.AllReduced)
	}
	return phi
}

// unrolled takes the N steps that the upper level is differentiated through,
// from φ⁰ as a constant. Adam goes on with the moments and the step count of the
// K steps before.
func (s *step) unrolled(phi optim.State) optim.State {
	phi = phi.Detached(s.Context)
	for i := range s.cfg.Unroll {
		phi = s.inner(fmt.Sprintf("unroll %d", i), phi, s.cfg.LowerSteps+i, s.sharing)
	}
	return phi
}

// inner takes inner step number i on G. It can be differentiated.
func (s *step) inner(name string, phi optim.State, i int, sharing algo.Inner) (next optim.State) {
	s.Builder.Scope(name, func() {
		loss := s.lower(phi.P, innerPlace+i)
		if i < max(s.cfg.LowerSteps, 1) {
			s.lowerLoss = loss
		}
		grads := s.average(name, s.Grad(loss, phi.P...), sharing)
		next = s.cfg.inner().Step(s.Context, phi, grads, s.rates[i])
	})
	return next
}

// average is the mean of gradients over ranks. The adjoint of an all-reduced
// mean is an all-reduced mean, so it averages cotangents as well; the other ways
// of sharing are wrong.
func (s *step) average(name string, grads []graph.ID, sharing algo.Inner) []graph.ID {
	switch sharing {
	case algo.Local:
		return grads
	case algo.NoAdjoint:
		means := ddp.Sync(s.Builder, s.World, name, grads)
		out := make([]graph.ID, len(grads))
		for i, g := range grads { // the value of the mean, the derivative of g
			out[i] = s.Add(g, s.StopGrad(s.Sub(means[i], g)))
		}
		return out
	}
	return ddp.Sync(s.Builder, s.World, name, grads)
}
