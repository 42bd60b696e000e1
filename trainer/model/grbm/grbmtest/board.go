package grbmtest

import (
	"context"
	"errors"
	"math"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// Board is n points of the checkerboard, other ones for each part: uniform on
// [0, ½]² and [½, 1]². Their entropy is −log 2, so no log-likelihood is above log 2.
func Board(part, n int) []float64 {
	points := make([]float64, 0, 2*n)
	for i := range n {
		var u [3]float64
		philox.Name{Seed: Seed, Purpose: philox.Testing, Step: uint32(part), Sample: uint32(i)}.Uniform(u[:])
		corner := 0.0
		if u[2] > 0.5 {
			corner = 0.5
		}
		points = append(points, corner+u[0]/2, corner+u[1]/2)
	}
	return points
}

// Independent is the log-likelihood of the board under the best two independent
// Gaussians, whose variance is 1/12.
var Independent = -math.Log(2 * math.Pi * math.E / 12)

// Machine is what LogLikelihood asks of a model.
type Machine interface {
	algo.Energetic
	algo.Normalised
}

// LogLikelihood is ⟨−F(v) − log Z⟩ over n pictures, and log Z, by enumeration.
func LogLikelihood(ctx context.Context, b exec.Backend, vars exec.Vars, m Machine, n int, pictures []float64) (ll, logz float64, err error) {
	z, err := m.LogZ(algo.LogZOptions{Exact: true})
	if err != nil {
		return 0, 0, err
	}
	total, err := chain.Run(ctx, b, vars, z.Plan, Seed)
	if err != nil {
		return 0, 0, err
	}
	g, err := m.Energies(nn.Eval, n)
	if err != nil {
		return 0, 0, err
	}
	p, err := b.Compile(g, exec.Options{Name: "energies", Vars: vars})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	set(p, algo.InputImages, pictures...)
	if err := exec.Run(ctx, p); err != nil {
		return 0, 0, err
	}
	for _, f := range ddptest.Numbers(p.Output(algo.OutputEnergy)) {
		ll -= (f + total.Scalar()) / float64(n)
	}
	if math.IsNaN(ll) {
		return 0, 0, errors.New("the log-likelihood is not a number")
	}
	return ll, total.Scalar(), nil
}
