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

// soft are Gumbel-softmax samples of q(h|v), for uniform draws.
func (l loops) soft(v, uniform []float64) []float64 {
	h := make([]float64, l.hidden)
	for j := range h {
		x := l.vars["posterior.bias"][j]
		for i := range v {
			x += l.vars["posterior.weight"][j*l.visible+i] * v[i]
		}
		h[j] = 1 / (1 + math.Exp(-(x+math.Log(uniform[j]/(1-uniform[j])))/l.cfg.Temperature))
	}
	return h
}

// score is what the critic is trained on, for the draws of a slot.
func (l loops) score(v []float64, slot int) []float64 {
	if l.cfg.Estimator == Exact {
		return l.marginal(v)
	}
	n := l.cfg.Particles
	uniform := l.draw(philox.Hidden, slot, n*l.hidden, philox.Name.Uniform)
	s := make([]float64, l.visible)
	for k := range n {
		h := l.soft(v, uniform[k*l.hidden:(k+1)*l.hidden])
		for i, g := range slope(v, func(v []float64) float64 { return -grbmtest.Energy(l.vars, v, h) }) {
			s[i] += g / float64(n)
		}
	}
	return s
}

func (l loops) draw(p philox.Purpose, slot, n int, fill func(philox.Name, []float64)) []float64 {
	x := make([]float64, n)
	fill(philox.Name{Seed: grbmtest.Seed, Purpose: p, Step: uint32(l.step), Sample: uint32(slot)}, x)
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
