package bism

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// Hypergradient builds J(θ, φᴺ(θ)) and its gradient in θ. It begins with the
// variables' φ and moments, as the K steps leave them, and takes the N unrolled
// steps with the draws and the rates of a training step.
func (t trainee) Hypergradient(o algo.HyperOptions) (*graph.Graph, []nn.Variable, error) {
	if o.DType != graph.F32 && o.DType != graph.F64 {
		return nil, nil, fmt.Errorf("bism: want a hypergradient in float32 or float64, got %v", o.DType)
	}
	c := nn.NewContext(nn.Train, o.World)
	c.DType = o.DType
	newStep(c, t.cfg, t.Model, o.Batch).hypergradient(o.Inner)
	g, err := c.Commit()
	return g, c.Variables(), err
}

// hypergradient makes the outputs of Hypergradient.
func (s *step) hypergradient(sharing algo.Inner) {
	s.sharing = sharing
	loss := s.upper(s.unrolled(s.phi).P)
	grads := s.average("upper", s.Grad(loss, s.theta.P...), algo.AllReduced)
	for i, p := range s.thetas {
		s.Output(algo.GradientOf(p.Name), grads[i])
	}
	if s.World > 1 {
		loss = s.AllReduce(collective.Mean, "loss", loss)[0]
	}
	s.Output(algo.OutputUpper, loss)
}
