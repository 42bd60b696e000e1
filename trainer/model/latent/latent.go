// Package latent is an energy with latents and its approximate posterior, as
// methods that train both see it [ALGORITHMS.md §2, §3]: p(v,h) ∝ exp(−E(v,h; θ))
// and q(h|v; φ), of a Gaussian restricted Boltzmann machine (Units) or of deep
// networks (Networks).
//
// Parameters are lists of values in the order in which Declare gives them, so that
// a method can compute with stepped ones. Nothing is drawn here: who samples
// brings the numbers, of the distribution that a Belief names.
//
// All values are plain and may be used from any goroutine; a graph under
// construction belongs to one.
package latent

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Model is a model and its approximate posterior.
type Model interface {
	// Shape is that of one sample as the model takes it.
	Shape() graph.Shape
	// Declare declares the variables θ and φ.
	Declare(c *nn.Context) (theta, phi []nn.Param)
	// Features are all that E needs to know of v (B, shape): values (B, …), of which
	// energies of several h are made at little cost.
	Features(c *nn.Context, theta []graph.ID, v graph.ID) []graph.ID
	// EnergyOf is E(v,h), (B), for the features of v and for h (B, d_h).
	EnergyOf(c *nn.Context, theta, features []graph.ID, h graph.ID) graph.ID
	// Infer is q(h|v).
	Infer(c *nn.Context, phi []graph.ID, v graph.ID) Belief
	// Gap is each sample's divergence of q from p(h|v), (B), as far as it can be
	// computed; h is a sample of q.
	Gap(c *nn.Context, theta []graph.ID, q Belief, v, h graph.ID) graph.ID
}

// Belief is q(h|v) at some v (B, shape).
type Belief interface {
	// Dist is the distribution that Sample wants numbers of.
	Dist() graph.Dist
	// Sample is h (B, d_h), differentiable in φ, from numbers (B, d_h).
	Sample(c *nn.Context, numbers graph.ID) graph.ID
	// LogProb is log q(h|v), (B).
	LogProb(c *nn.Context, h graph.ID) graph.ID
	// Mean is that of q, (B, d_h).
	Mean(c *nn.Context) graph.ID
	// Repeat is q with every sample of v n times, one after the other: (B·n).
	Repeat(c *nn.Context, n int) Belief
}

// Energy is E(v,h), (B), for v (B, shape) and h (B, d_h).
func Energy(c *nn.Context, m Model, theta []graph.ID, v, h graph.ID) graph.ID {
	return m.EnergyOf(c, theta, m.Features(c, theta, v), h)
}

// LogRatio is −E(v,h) − log q(h|v), (B), which stands for log p(v).
func LogRatio(c *nn.Context, m Model, theta []graph.ID, q Belief, v, h graph.ID) graph.ID {
	return c.Neg(c.Add(Energy(c, m, theta, v, h), q.LogProb(c, h)))
}

// Repeat is x (B, …) with every row n times, one after the other: (B·n, …).
func Repeat(c *nn.Context, x graph.ID, n int) graph.ID {
	s := c.Shape(x)
	if c.Err() != nil || n == 1 {
		return x
	}
	b, rest := s.At(0), s.Slice()[1:]
	rows := c.Reshape(x, graph.D(append([]int{b, 1}, rest...)...))
	all := c.BroadcastTo(rows, graph.D(append([]int{b, n}, rest...)...))
	return c.Reshape(all, graph.D(append([]int{b * n}, rest...)...))
}
