package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/trained"
)

// logZ is a normaliser and how it was found.
type logZ struct {
	Value float64  `json:"value"`
	SE    *float64 `json:"se,omitempty"`  // standard error of an estimate
	ESS   *float64 `json:"ess,omitempty"` // effective number of its chains
	How   string   `json:"how"`
}

// logZ is the logarithm of the model's normaliser: exact, or an estimate where
// there is too much to enumerate. It is computed once.
func (e *evaluation) logZ(ctx context.Context) (*logZ, error) {
	if e.z != nil {
		return e.z, nil
	}
	model := e.trained.Model.(algo.Normalised)
	n, err := model.LogZ(algo.LogZOptions{Exact: true})
	how := "by enumeration"
	if errors.Is(err, algo.ErrTooMany) {
		how = fmt.Sprintf("by annealed importance sampling, %d chains of %d steps", e.o.aisChains, e.o.aisSteps)
		n, err = model.LogZ(algo.LogZOptions{Chains: e.o.aisChains, Steps: e.o.aisSteps})
	}
	if err != nil {
		return nil, err
	}
	progress := func(done, of int) { e.show.Progress("log Z", "steps/s", int64(done), int64(of)) }
	weights, err := e.trained.Draw(ctx, e.backend, trained.Draw{Plan: n.Plan, Seed: e.o.seed, Smaller: "--ais-chains", Each: progress})
	if err != nil {
		return nil, err
	}
	e.z, err = estimate(weights, how, n.Exact)
	return e.z, err
}

// estimate is log Z from log weights.
func estimate(weights *exec.Tensor, how string, exact bool) (*logZ, error) {
	logs := make([]float64, weights.Type.Shape.Len())
	for i := range logs {
		logs[i] = weights.At(i)
	}
	m, err := eval.LogMeanExp(logs)
	if err != nil {
		return nil, fmt.Errorf("log Z %s: %w", how, err)
	}
	z := &logZ{Value: m.Value, How: how}
	if !exact && !math.IsNaN(m.SE) {
		z.SE, z.ESS = &m.SE, &m.ESS
	}
	return z, nil
}

// String is for a table.
func (z logZ) String() string {
	if z.SE == nil {
		return fmt.Sprintf("%.6g, %s", z.Value, z.How)
	}
	return fmt.Sprintf("%.6g ± %.2g, %s, %.4g of them effective", z.Value, *z.SE, z.How, *z.ESS)
}
