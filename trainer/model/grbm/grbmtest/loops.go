package grbmtest

import (
	"math"

	"ebtrain/ddp/ddptest"
)

// Energy is E(v,h) of the machine whose variables these are, by the formula, in plain
// loops.
func Energy(vars ddptest.Values, v, h []float64) float64 {
	e := 0.0
	for i := range v {
		d := (v[i] - vars["model.b"][i]) / math.Exp(vars["model.s"][i])
		e += d * d / 2
		for j := range h {
			e -= v[i] * vars["model.w"][i*len(h)+j] * h[j]
		}
	}
	for j := range h {
		e -= vars["model.c"][j] * h[j]
	}
	return e
}

// FreeEnergy is F(v), by all states of the hidden units.
func FreeEnergy(vars ddptest.Values, v []float64) float64 {
	sum, h := 0.0, make([]float64, len(vars["model.c"]))
	for k := range 1 << len(h) {
		for j := range h {
			h[j] = float64(k >> j & 1)
		}
		sum += math.Exp(-Energy(vars, v, h))
	}
	return -math.Log(sum)
}
