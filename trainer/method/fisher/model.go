package fisher

import (
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/latent"
	"ebtrain/trainer/model/nn"
)

// Model is a fixed machine and the critic that is trained. It samples nothing: what
// the machine can do is of no interest.
type Model struct {
	machine grbm.Machine
	cfg     Config
}

// Places of the draws of h: in the score, and in the first of the steps on q.
const (
	scorePlace = iota
	lowerPlace
)

// Takes are vectors as they are.
func (m Model) Takes() algo.Inputs { return m.machine.Takes() }

// scene is a graph that reads all that there is, on some samples.
type scene struct {
	*nn.Context
	m      Model
	units  latent.Units
	v      graph.ID   // (B, d), constant
	key    graph.ID   // of draws
	theta  []graph.ID // of the machine
	critic critic
}

func (m Model) scene(c *nn.Context, batch int) scene {
	images := c.Input(algo.InputImages, graph.T(c.DType, append([]int{batch}, m.machine.Picture.Slice()...)...))
	s := scene{Context: c, m: m, key: c.Input(algo.InputKey, graph.KeyType), v: c.StopGrad(m.machine.Flat(c, images)),
		units: latent.Units{Size: m.machine.Size, Temperature: m.cfg.Temperature}}
	s.declareMachine()
	if m.cfg.Estimator == Variational {
		m.machine.DeclarePosterior(c)
	}
	s.critic = declareCritic(c, m.machine.Visible)
	return s
}

// declareMachine declares the parameters that nothing trains, by the names that
// grbm.Size.Declare gives them.
func (s *scene) declareMachine() {
	z, perturbed := s.m.machine.Size, nn.Normal(s.m.cfg.Rho)
	s.Scope(grbm.Scope, func() {
		s.theta = []graph.ID{
			s.Buffer("s", graph.D(z.Visible), nn.Zeros),
			s.Buffer("w", graph.D(z.Visible, z.Hidden), perturbed),
			s.Buffer("b", graph.D(z.Visible), perturbed),
			s.Buffer("c", graph.D(z.Hidden), perturbed),
		}
	})
}

// hidden is the type of n latents for each sample, as they are drawn.
func (s *scene) hidden(n int) graph.Type {
	if n == 1 {
		return graph.T(s.DType, s.Batch(s.v), s.m.machine.Hidden)
	}
	return graph.T(s.DType, s.Batch(s.v), n, s.m.machine.Hidden)
}

// score is what stands for the score of the marginal, (B, d), as a constant.
func (s *scene) score() graph.ID {
	p := grbm.Of(s.theta)
	if s.m.cfg.Estimator == Exact {
		return s.StopGrad(p.Score(s.Context, s.v))
	}
	n := s.m.cfg.Particles
	phi := nn.IDs(s.Params(grbm.PosteriorScope))
	q := s.units.Infer(s.Context, phi, s.v).Repeat(s.Context, n)
	u := s.Reshape(s.Draw(s.key, q.Dist(), philox.Hidden, scorePlace, s.hidden(n)), graph.D(s.Batch(s.v)*n, s.m.machine.Hidden))
	h := s.Reshape(q.Sample(s.Context, u), graph.D(s.Batch(s.v), n, s.m.machine.Hidden))
	// −∂E/∂v = (b + σ²Wh − v)/σ² is linear in h, and σ is 1.
	return s.StopGrad(s.Sub(p.Mean(s.Context, s.Mean(h, 1)), s.v))
}

// reading begins a graph over n samples that trains nothing.
func (m Model) reading(n int) scene { return m.scene(nn.NewContext(nn.Eval, 1), n) }

// estimate is each sample's term of the critic's objective, (n), its trace in closed
// form.
func (s *scene) estimate() graph.ID {
	return objective(s.Context, s.score(), s.critic.at(s.Context, s.v), s.critic.trace(s.Context, s.v))
}

// truth is ½‖s + v‖² of each sample, (n), s the exact score of the marginal.
func (s *scene) truth() graph.ID {
	apart := s.Add(grbm.Of(s.theta).Score(s.Context, s.v), s.v)
	return s.Scale(s.Sum(s.Square(apart), 1), 0.5)
}

// Loss is minus the estimate: that of held-out samples chooses among checkpoints.
func (m Model) Loss(n int) (*graph.Graph, error) {
	s := m.reading(n)
	s.Output(algo.OutputLoss, s.Neg(s.estimate()))
	return s.Commit()
}

// Divergence is the estimate, and the truth where the data are N(0, I).
func (m Model) Divergence(n int) (*graph.Graph, error) {
	s := m.reading(n)
	s.Output(algo.OutputEstimate, s.estimate())
	s.Output(algo.OutputTruth, s.truth())
	return s.Commit()
}

// inferring is a Model with a q.
type inferring struct{ Model }

// PosteriorGap is each sample's KL(q(h|v) ‖ p(h|v)), exactly.
func (m inferring) PosteriorGap(n int) (*graph.Graph, error) {
	s := m.reading(n)
	q := s.units.Infer(s.Context, nn.IDs(s.Params(grbm.PosteriorScope)), s.v)
	s.Output(algo.OutputGap, s.units.Gap(s.Context, s.theta, q, s.v, 0))
	return s.Commit()
}
