package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
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
	// Back is another estimate of it, by chains that begin at the data and go back.
	Back *logZ `json:"back,omitempty"`
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
	z, err := e.weigh(ctx, "log Z", n, nil, how)
	if err == nil && !n.Exact {
		z.Back, err = e.back(ctx, model)
	}
	if err == nil {
		e.z = z
	}
	return z, err
}

// weigh runs what finds a normaliser, from the samples that it is given, if any.
func (e *evaluation) weigh(ctx context.Context, phase string, n algo.Normaliser, given []float32, how string) (*logZ, error) {
	less := "fewer --ais-chains or --ais-steps"
	if n.Exact {
		less = "--measures that want no normaliser"
	}
	progress := func(done, of int) { e.progress(phase, "steps/s", int64(done), int64(of), less) }
	weights, err := e.trained.Draw(ctx, e.backend, trained.Draw{Plan: n.Plan, Seed: e.o.seed, Given: given, Smaller: "--ais-chains", Each: progress})
	if err != nil {
		return nil, err
	}
	return estimate(weights, how, n.Exact)
}

// back estimates log Z again, by chains that begin at the data. Annealed importance
// sampling that never reaches where most of the model is agrees with itself, and these
// do not agree with it.
func (e *evaluation) back(ctx context.Context, model algo.Normalised) (*logZ, error) {
	from, chains, err := e.beginnings(ctx)
	if err != nil {
		return nil, err
	}
	n, err := model.LogZ(algo.LogZOptions{Chains: chains, Steps: e.o.aisSteps, Back: true})
	if err != nil {
		return nil, err
	}
	z, err := e.weigh(ctx, "log Z, back", n, from, fmt.Sprintf("by %d chains that begin at the data and go back", chains))
	if err == nil {
		z.Value = -z.Value
	}
	return z, err
}

// beginnings are measured samples, up to --ais-chains. Of more, chance takes some, by the
// seed: the first ones may be of a single class.
func (e *evaluation) beginnings(ctx context.Context) (x []float32, n int, err error) {
	all, err := e.count(e.o.data, e.o.split)
	if err != nil {
		return nil, 0, err
	}
	n = int(least(all, int64(e.o.aisChains)))
	taken := make([]bool, all)
	for _, i := range (philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: philox.SamplingStarts}).Perm(int(all))[:n] {
		taken[i] = true
	}
	at, size := 0, e.takes.Shape.Len()
	_, err = e.each(ctx, e.own("samples"), func(some []float32, labels []int64) error {
		for i := range labels {
			if taken[at+i] {
				x = append(x, some[i*size:(i+1)*size]...)
			}
		}
		at += len(labels)
		return nil
	})
	return x, n, err
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
	text := fmt.Sprintf("%.6g, %s", z.Value, z.How)
	if z.SE != nil {
		text = fmt.Sprintf("%.6g ± %.2g, %s, %.4g of them effective", z.Value, *z.SE, z.How, *z.ESS)
	}
	if z.Back != nil {
		text += "; " + z.Back.String()
	}
	return text
}

// missed is how much more the chains find that begin at the data, in nats; 0 if that is
// within the errors, or less than anybody minds.
func (z logZ) missed() float64 {
	const errors, least = 5, 1
	if z.Back == nil {
		return 0
	}
	var square float64
	for _, one := range []*logZ{&z, z.Back} {
		if one.SE == nil { // one chain does not say how far it may be off
			return 0
		}
		square += *one.SE * *one.SE
	}
	if more := z.Back.Value - z.Value; more > max(least, errors*math.Sqrt(square)) {
		return more
	}
	return 0
}
