package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/trained"
)

// fisher measures the Fisher divergence to the data but for the data's constant.
func (e *evaluation) fisher(ctx context.Context, r *report) (err error) {
	if model, ok := e.trained.Model.(algo.FisherScored); ok {
		r.Fisher, r.Images, err = e.mean(ctx, "fisher", algo.OutputFisher, model.FisherLoss)
	}
	return err
}

// gap measures how far the approximate posterior is from the model's.
func (e *evaluation) gap(ctx context.Context, r *report) (err error) {
	if model, ok := e.trained.Model.(algo.Inferred); ok {
		r.PosteriorGap, r.Images, err = e.mean(ctx, "posterior gap", algo.OutputGap, model.PosteriorGap)
	}
	return err
}

// likelihood measures the mean log-likelihood, −⟨E(v)⟩ − log Z.
func (e *evaluation) likelihood(ctx context.Context, r *report) error {
	model, ok := e.trained.Model.(algo.Normalised)
	energetic, has := e.trained.Model.(algo.Energetic)
	if !ok || !has {
		return nil
	}
	energy, n, err := e.mean(ctx, "likelihood", algo.OutputEnergy, func(n int) (*graph.Graph, error) { return energetic.Energies(nn.Eval, n) })
	if err != nil {
		return err
	}
	z, err := e.logZ(ctx, model)
	if err != nil {
		return err
	}
	ll := -*energy - z.Value
	r.Images, r.LL, r.LogZ = n, &ll, z
	return nil
}

// logZ is the logarithm of the normaliser, exact where that is possible.
func (e *evaluation) logZ(ctx context.Context, model algo.Normalised) (*logZ, error) {
	n, err := model.LogZ(algo.LogZOptions{Exact: true})
	how := "by enumeration"
	if err != nil {
		how = fmt.Sprintf("by annealed importance sampling, %d chains of %d steps", e.o.aisChains, e.o.aisSteps)
		n, err = model.LogZ(algo.LogZOptions{Chains: e.o.aisChains, Steps: e.o.aisSteps})
	}
	if err != nil {
		return nil, err
	}
	progress := func(done, of int) { e.show.Progress("log Z", "steps/s", int64(done), int64(of)) }
	weights, err := e.trained.RunChain(ctx, e.backend, n.Plan, e.o.seed, progress)
	if err != nil {
		return nil, err
	}
	value := logMeanExp(weights)
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, fmt.Errorf("log Z %s is %v: the model's weights are out of all bounds", how, value)
	}
	return &logZ{Value: value, How: how}, nil
}

// logMeanExp is the logarithm of the mean of the exponentials of w.
func logMeanExp(w *exec.Tensor) float64 {
	n := w.Type.Shape.Len()
	most := math.Inf(-1)
	for i := range n {
		most = math.Max(most, w.At(i))
	}
	sum := 0.0
	for i := range n {
		sum += math.Exp(w.At(i) - most)
	}
	return most + math.Log(sum/float64(n))
}

// mean is the mean of one of a graph's outputs over the data, and their number.
func (e *evaluation) mean(ctx context.Context, phase, output string, build trained.Builder) (mean *float64, n int, err error) {
	look := trained.NewLook(e.trained, e.backend, phase, build, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	sum := 0.0
	n, err = e.each(ctx, phase, e.o.data, e.o.split, func(x []float32, rows int) error {
		p, err := look.At(ctx, x, rows, int64(n))
		if err != nil {
			return err
		}
		n += rows
		for _, v := range p.Output(output).F32() {
			sum += float64(v)
		}
		return nil
	})
	sum /= float64(n)
	return &sum, n, err
}
