package nce

import (
	"math"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/grbm/grbmtest"
	"ebtrain/trainer/model/optim"
)

// loops is a step in plain Go: losses from the energy's formula, gradients by
// central differences, Adam by its definition.
type loops struct {
	cfg             Config
	visible, hidden int
	vars            ddptest.Values // parameters and moments, by name
	step            int
}

// draw is a draw of one sample.
func (l loops) draw(p philox.Purpose, sub, slot, n int, fill func(philox.Name, []float64)) []float64 {
	x := make([]float64, n)
	fill(philox.Name{Seed: grbmtest.Seed, Purpose: p, Sub: uint16(sub), Step: uint32(l.step), Sample: uint32(slot)}, x)
	return x
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

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// logq is log q(h|v), where h may be soft.
func logq(logits, h []float64) float64 {
	sum := 0.0
	for j, x := range logits {
		sum += h[j]*math.Log(sigmoid(x)) + (1-h[j])*math.Log(sigmoid(-x))
	}
	return sum
}

// lower is the loss of step k on q.
func (l loops) lower(k int, data []float64) float64 {
	n := len(data) / l.visible
	sum := 0.0
	for slot := range n {
		v := data[slot*l.visible : (slot+1)*l.visible]
		x := l.logits(v)
		h := make([]float64, l.hidden)
		for j, u := range l.draw(philox.Hidden, k, slot, l.hidden, philox.Name.Uniform) {
			h[j] = sigmoid((x[j] + math.Log(u/(1-u))) / l.cfg.Temperature)
		}
		sum += grbmtest.Energy(l.vars, v, h) + logq(x, h)
	}
	return sum / float64(n)
}

// minusFree is −F(u), or its estimate by so many draws.
func (l loops) minusFree(u []float64, slot, draws, sub int) float64 {
	if !l.cfg.Variational {
		return -grbmtest.FreeEnergy(l.vars, u)
	}
	x := l.logits(u)
	uniform := l.draw(philox.Hidden, sub, slot, draws*l.hidden, philox.Name.Uniform)
	mean := 0.0
	for k := range draws {
		h := make([]float64, l.hidden)
		for j := range h {
			if uniform[k*l.hidden+j] < sigmoid(x[j]) {
				h[j] = 1
			}
		}
		mean += math.Exp(-grbmtest.Energy(l.vars, u, h)-logq(x, h)) / float64(draws)
	}
	return math.Log(mean)
}

// ratio is r(u).
func (l loops) ratio(u []float64, slot, draws, sub int) float64 {
	normal := 0.0
	for _, x := range u {
		normal -= x*x/2 + math.Log(2*math.Pi)/2
	}
	return l.minusFree(u, slot, draws, sub) - l.vars["contrast.log_z"][0] - normal
}

// upper is both terms of the loss.
func (l loops) upper(data []float64) (onData, onNoise float64) {
	n, k := len(data)/l.visible, 0
	if l.cfg.Variational {
		k = l.cfg.PosteriorSteps
	}
	for slot := range n {
		v := data[slot*l.visible : (slot+1)*l.visible]
		y := l.draw(philox.Contrast, 0, slot, l.visible, philox.Name.Normal)
		onData -= math.Log(sigmoid(l.ratio(v, slot, 1, k))) / float64(n)
		onNoise -= math.Log(sigmoid(-l.ratio(y, slot, l.cfg.NoiseLatents, k+1))) / float64(n)
	}
	return onData, onNoise
}

// descend takes a step of Adam on the named parameters and returns the gradient's
// norm.
func (l loops) descend(a optim.Adam, t int, names []string, loss func() float64) float64 {
	const d = 1e-5
	grads, square := map[string][]float64{}, 0.0
	for _, name := range names {
		p := l.vars[name]
		grads[name] = make([]float64, len(p))
		for i, old := range p {
			p[i] = old + d
			up := loss()
			p[i] = old - d
			g := (up - loss()) / (2 * d)
			p[i], grads[name][i] = old, g
			square += g * g
		}
	}
	rates := a.Schedule(int64(t), 0)
	for _, name := range names {
		m, v := l.vars["adam."+a.Name+"."+name+".m"], l.vars["adam."+a.Name+"."+name+".v"]
		for i, g := range grads[name] {
			m[i] = a.Beta1*m[i] + (1-a.Beta1)*g
			v[i] = a.Beta2*v[i] + (1-a.Beta2)*g*g
			l.vars[name][i] -= float64(rates[0]) * m[i] / (math.Sqrt(v[i])*float64(rates[1]) + a.Eps)
		}
	}
	return math.Sqrt(square)
}

// take is a whole step; it returns the report.
func (l loops) take(data []float64) []float64 {
	var tail []float64
	lowers := 0
	var last float64
	if l.cfg.Variational {
		lowers = l.cfg.PosteriorSteps
		for k := range lowers {
			last = l.lower(k, data)
			norm := l.descend(l.cfg.posterior(), l.step*lowers+k, []string{"posterior.weight", "posterior.bias"}, func() float64 { return l.lower(k, data) })
			tail = []float64{norm}
		}
	}
	onData, onNoise := l.upper(data)
	a := l.vars["contrast.log_z"][0]
	norm := l.descend(l.cfg.Adam, l.step, []string{"model.s", "model.w", "model.b", "model.c", "contrast.log_z"}, func() float64 {
		onData, onNoise := l.upper(data)
		return onData + onNoise
	})
	report := []float64{onData + onNoise, onData, onNoise, 0}
	if lowers > 0 {
		report = append(report, last)
	}
	return append(append(report, a, norm), tail...)
}
