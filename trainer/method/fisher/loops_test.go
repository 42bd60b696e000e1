package fisher

import (
	"math"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/grbm/grbmtest"
)

// loops is the method in plain Go: densities from the energy's formula, derivatives
// by central differences.
type loops struct {
	cfg             Config
	visible, hidden int
	vars            ddptest.Values
	step            int
}

const d = 1e-5 // of differences

// slope is that of y at v, by coordinate.
func slope(v []float64, y func([]float64) float64) []float64 {
	g := make([]float64, len(v))
	for i := range v {
		up, down := append([]float64(nil), v...), append([]float64(nil), v...)
		up[i] += d
		down[i] -= d
		g[i] = (y(up) - y(down)) / (2 * d)
	}
	return g
}

// marginal is ∇_v log p(v).
func (l loops) marginal(v []float64) []float64 {
	return slope(v, func(v []float64) float64 { return -grbmtest.FreeEnergy(l.vars, v) })
}

// logits are those of q(h|v).
func (l loops) logits(v []float64) []float64 {
	x := make([]float64, l.hidden)
	for j := range x {
		x[j] = l.vars["posterior.bias"][j]
		for i := range v {
			x[j] += l.vars["posterior.weight"][j*l.visible+i] * v[i]
		}
	}
	return x
}

// soft are Gumbel-softmax samples of q(h|v), for uniform draws.
func (l loops) soft(v, uniform []float64) []float64 {
	h := l.logits(v)
	for j, x := range h {
		h[j] = 1 / (1 + math.Exp(-(x+math.Log(uniform[j]/(1-uniform[j])))/l.cfg.Temperature))
	}
	return h
}

// lower is the loss of step k on q: E(v, h) + log q(h|v), the mean over samples.
func (l loops) lower(k int, samples [][]float64) (loss float64) {
	for slot, v := range samples {
		h := l.soft(v, l.draw(philox.Hidden, lowerPlace+k, slot, l.hidden, philox.Name.Uniform))
		loss += grbmtest.Energy(l.vars, v, h) / float64(len(samples))
		for j, x := range l.logits(v) {
			loss -= (h[j]*math.Log1p(math.Exp(-x)) + (1-h[j])*math.Log1p(math.Exp(x))) / float64(len(samples))
		}
	}
	return loss
}

// descend takes the first steps of Adam on q, and returns the loss and the length of the
// gradient in the last. The moments are 0 before.
func (l loops) descend(samples [][]float64) (loss, length float64) {
	a, n := l.cfg.posterior(), l.cfg.LowerSteps
	m, w := map[string][]float64{}, map[string][]float64{}
	for k := range n {
		loss, length = l.lower(k, samples), 0
		grads := map[string][]float64{}
		for _, name := range []string{"posterior.weight", "posterior.bias"} {
			was := l.vars[name]
			grads[name] = slope(was, func(x []float64) float64 {
				l.vars[name] = x
				return l.lower(k, samples)
			})
			l.vars[name] = was
		}
		rates := a.Schedule(int64(l.step*n+k), 0)
		for name, g := range grads {
			if k == 0 {
				m[name], w[name] = make([]float64, len(g)), make([]float64, len(g))
			}
			for i, g := range g {
				m[name][i] = a.Beta1*m[name][i] + (1-a.Beta1)*g
				w[name][i] = a.Beta2*w[name][i] + (1-a.Beta2)*g*g
				l.vars[name][i] -= float64(rates[0]) * m[name][i] / (math.Sqrt(w[name][i])*float64(rates[1]) + a.Eps)
				length += g * g
			}
		}
	}
	return loss, math.Sqrt(length)
}

// score is what the critic is trained on, for the draws of a slot.
func (l loops) score(v []float64, slot int) []float64 {
	if l.cfg.Estimator == Exact {
		return l.marginal(v)
	}
	n := l.cfg.Particles
	uniform := l.draw(philox.Hidden, scorePlace, slot, n*l.hidden, philox.Name.Uniform)
	s := make([]float64, l.visible)
	for k := range n {
		h := l.soft(v, uniform[k*l.hidden:(k+1)*l.hidden])
		for i, g := range slope(v, func(v []float64) float64 { return -grbmtest.Energy(l.vars, v, h) }) {
			s[i] += g / float64(n)
		}
	}
	return s
}

func (l loops) draw(p philox.Purpose, sub, slot, n int, fill func(philox.Name, []float64)) []float64 {
	x := make([]float64, n)
	fill(philox.Name{Seed: grbmtest.Seed, Purpose: p, Sub: uint16(sub), Step: uint32(l.step), Sample: uint32(slot)}, x)
	return x
}

// critic is f(v).
func (l loops) critic(v []float64) []float64 {
	x := v
	for _, layer := range []string{"1", "2", "3"} {
		y := make([]float64, len(x))
		for i := range y {
			y[i] = l.vars["critic."+layer+".bias"][i]
			for j := range x {
				y[i] += l.vars["critic."+layer+".weight"][i*len(x)+j] * x[j]
			}
			if layer != "3" && y[i] < 0 {
				y[i] = math.Expm1(y[i])
			}
		}
		x = y
	}
	return x
}

// along is eᵀ(∂f/∂v)e.
func (l loops) along(v, e []float64) float64 {
	up, down := make([]float64, len(v)), make([]float64, len(v))
	for i := range v {
		up[i], down[i] = v[i]+d*e[i], v[i]-d*e[i]
	}
	a, b := l.critic(up), l.critic(down)
	sum := 0.0
	for i := range e {
		sum += e[i] * (a[i] - b[i]) / (2 * d)
	}
	return sum
}

// trace is tr ∂f/∂v.
func (l loops) trace(v []float64) (sum float64) {
	for i := range v {
		e := make([]float64, len(v))
		e[i] = 1
		sum += l.along(v, e)
	}
	return sum
}

// objective is sᵀf + trace − ½‖f‖².
func (l loops) objective(v, s []float64, trace float64) float64 {
	for i, f := range l.critic(v) {
		trace += s[i]*f - f*f/2
	}
	return trace
}

// truth is ½‖s + v‖².
func (l loops) truth(v []float64) (sum float64) {
	for i, s := range l.marginal(v) {
		sum += (s + v[i]) * (s + v[i]) / 2
	}
	return sum
}
