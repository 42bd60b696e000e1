package workload

import (
	"fmt"
	"math"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
)

// GRBM is a step of BiDSM on a Gaussian restricted Boltzmann machine
// [ALGORITHMS.md §2.1, §2.2]. With v (B, Visible) data and h (B, Hidden):
//
//	E(v,h) = Σᵢ (vᵢ−bᵢ)²/(2σᵢ²) − cᵀh − vᵀWh,  σᵢ = exp(sᵢ)
//	q(h|v): logits l = L·v + a; h = sigmoid((l + logistic noise)/Temperature)
//	lower loss G(θ,φ) = ⟨E(ṽ,h) + log q(h|ṽ)⟩, at ṽ = v + Sigma·ε
//	upper loss J(θ,φ) = ½⟨‖S + ε/Sigma‖²⟩, S = ∇_ṽ[−E(ṽ,h) − log q(h|ṽ)], h constant to ∇_ṽ
//
// θ = (s, W, b, c), φ = (L, a). A step makes Lower steps of Adam on φ, which
// are kept; then Unroll more, differentiable in θ and thrown away; and one step
// on θ down the gradient of J(θ, φᴺ(θ)).
type GRBM struct {
	Visible, Hidden int
	Lower, Unroll   int // K and N
	Sigma           float64
	Temperature     float64
	LR              float64 // of θ and φ
}

// Frey is the paper's setting for the Frey faces, 28×20 pixels, with N = 5.
func Frey() GRBM {
	return GRBM{Visible: 560, Hidden: 400, Lower: 5, Unroll: 5, Sigma: 0.3, Temperature: 0.1, LR: 2e-4}
}

// inputRates is the schedule of Adam, (Lower+Unroll+1, 2): the steps on φ, then
// the step on θ.
const inputRates = "rates"

// Report names the entries of the report: the losses J and G, G at the last of
// the Lower steps.
func (m GRBM) Report() []algo.Column { return algo.Columns([]string{"upper", "lower"}) }

// Feeder fills the schedule of Adam.
func (m GRBM) Feeder(p exec.Program) func(step int64, epoch int) {
	in := p.Input(inputRates)
	k, n := int64(m.Lower), int64(m.Unroll)
	return func(step int64, _ int) {
		for i := range k + n + 1 {
			t := k*step + i + 1
			if i == k+n {
				t = step + 1
			}
			optim.SetRow(in, int(i), rates(m.LR, t))
		}
	}
}

// Step builds one step for a rank that sees batch of world·batch samples.
func (m GRBM) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return algo.TrainStep("grbm", world, func(c *nn.Context) { m.build(c, batch) })
}

// grbm is a step under construction.
type grbm struct {
	*nn.Context
	m       GRBM
	v       graph.ID
	batch   int
	draw    noise
	samples uint16 // of ṽ and h, taken so far
}

func (m GRBM) build(c *nn.Context, batch int) {
	s := &grbm{Context: c, m: m, v: c.Input(algo.InputImages, graph.T(c.DType, batch, m.Visible)), batch: batch, draw: drawn(c)}
	c.Scope("model", func() {
		bound := nn.FanIn(m.Hidden)
		c.Weight("s", graph.D(m.Visible), nn.Zeros)
		c.Weight("w", graph.D(m.Visible, m.Hidden), bound)
		c.Weight("b", graph.D(m.Visible), bound)
		c.Weight("c", graph.D(m.Hidden), bound)
	})
	c.Scope("posterior", func() {
		c.Weight("weight", graph.D(m.Hidden, m.Visible), nn.FanIn(m.Visible))
		c.Weight("bias", graph.D(m.Hidden), nn.FanIn(m.Visible))
	})
	schedule := optim.Rows(c, inputRates, m.Lower+m.Unroll+1)
	thetas, phis := c.Params("model"), c.Params("posterior")
	theta, phi := optim.Declare(c, "upper", thetas), optim.Declare(c, "lower", phis)

	var lower graph.ID
	for i := range m.Lower {
		c.Builder.Scope(fmt.Sprintf("lower%d", i), func() {
			lower = s.lower(theta.P, phi.P)
			phi = adam().Step(c, phi, s.sync(fmt.Sprintf("lower %d", i), lower, phi.P), schedule[i])
		})
	}
	phi.Keep(c, "lower", phis)
	phi = phi.Detached(c)
	for i := range m.Unroll {
		c.Builder.Scope(fmt.Sprintf("unroll%d", i), func() {
			loss := s.lower(theta.P, phi.P)
			phi = adam().Step(c, phi, s.sync(fmt.Sprintf("unroll %d", i), loss, phi.P), schedule[m.Lower+i])
		})
	}
	c.Builder.Scope("upper", func() {
		upper := s.upper(theta.P, phi.P)
		theta = adam().Step(c, theta, s.sync("upper", upper, theta.P), schedule[m.Lower+m.Unroll])
		report(c, upper, lower)
	})
	theta.Keep(c, "upper", thetas)
}

// sync is the gradient of loss, averaged over ranks. Where it is differentiated
// again, so is the average.
func (s *grbm) sync(name string, loss graph.ID, wrt []graph.ID) []graph.ID {
	return ddp.Sync(s.Builder, s.World, name, s.Grad(loss, wrt...))
}

// sample draws ṽ and the noise of h.
func (s *grbm) sample() (noisy, eps, logistic graph.ID) {
	eps = s.draw(s.samples, graph.Normal, graph.T(s.DType, s.batch, s.m.Visible))
	u := s.draw(s.samples+1, graph.Uniform, graph.T(s.DType, s.batch, s.m.Hidden))
	s.samples += 2
	logistic = s.Sub(s.Log(u), s.Log(s.Shift(s.Neg(u), 1))) // the difference of two Gumbel draws
	return s.Add(s.v, s.Scale(eps, s.m.Sigma)), eps, logistic
}

// logits are those of q(h|v), (B, Hidden).
func (s *grbm) logits(phi []graph.ID, v graph.ID) graph.ID {
	return s.Add(s.MatMul(v, phi[0], false, true), phi[1])
}

func (s *grbm) hidden(phi []graph.ID, v, logistic graph.ID) graph.ID {
	return s.Sigmoid(s.Scale(s.Add(s.logits(phi, v), logistic), 1/s.m.Temperature))
}

// bound is Σ over the batch of E(v,h) + log q(h|v).
func (s *grbm) bound(theta, phi []graph.ID, v, h graph.ID) graph.ID {
	logSigma, w, b, c := theta[0], theta[1], theta[2], theta[3]
	square := s.Sum(s.Mul(s.Square(s.Sub(v, b)), s.Scale(s.Exp(s.Scale(logSigma, -2)), 0.5)))
	linear := s.Add(s.Sum(s.Mul(h, c)), s.Sum(s.Mul(s.MatMul(v, w, false, false), h)))
	l := s.logits(phi, v)
	logQ := s.Sum(s.Sub(s.Mul(h, l), s.Softplus(l)))
	return s.Add(s.Sub(square, linear), logQ)
}

func (s *grbm) lower(theta, phi []graph.ID) graph.ID {
	v, _, logistic := s.sample()
	return s.Scale(s.bound(theta, phi, v, s.hidden(phi, v, logistic)), 1/float64(s.batch))
}

func (s *grbm) upper(theta, phi []graph.ID) graph.ID {
	v, eps, logistic := s.sample()
	h := s.hidden(phi, s.StopGrad(v), logistic)
	score := s.Grad(s.Neg(s.bound(theta, phi, v, h)), v)[0]
	miss := s.Add(score, s.Scale(eps, 1/s.m.Sigma))
	return s.Scale(s.Sum(s.Square(miss)), 0.5/float64(s.batch))
}

// Validate says what is wrong with the sizes.
func (m GRBM) Validate() error {
	for _, c := range []struct {
		what string
		n    int
	}{{"visible units", m.Visible}, {"hidden units", m.Hidden}, {"lower steps", m.Lower}} {
		if c.n < 1 {
			return fmt.Errorf("grbm: want at least one of %s, got %d", c.what, c.n)
		}
	}
	if m.Unroll < 0 || !(m.Sigma > 0) || !(m.Temperature > 0) || !(m.LR > 0) || math.IsInf(m.Sigma+m.Temperature+m.LR, 0) {
		return fmt.Errorf("grbm: want unrolled steps of at least 0 and positive noise, temperature and rate, got %d, %v, %v, %v", m.Unroll, m.Sigma, m.Temperature, m.LR)
	}
	return nil
}
