package main

import (
	"context"
	"errors"
	"math"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/trained"
)

// fisher measures the Fisher divergence to the data but for the data's constant.
func (e *evaluation) fisher(ctx context.Context, r *report) (err error) {
	r.Fisher, err = e.mean(ctx, e.own("fisher"), algo.OutputFisher, e.trained.Model.(algo.FisherScored).FisherLoss)
	return err
}

// critic measures what a critic estimates of the Fisher divergence from the data, and
// the truth.
func (e *evaluation) critic(ctx context.Context, r *report) (err error) {
	build := e.trained.Model.(algo.Criticised).Divergence
	if r.Critic, err = e.mean(ctx, e.own("critic"), algo.OutputEstimate, build); err != nil {
		return err
	}
	r.Truth, err = e.mean(ctx, e.own("truth"), algo.OutputTruth, build)
	return err
}

// gap measures how far the approximate posterior is from the model's.
func (e *evaluation) gap(ctx context.Context, r *report) (err error) {
	r.PosteriorGap, err = e.mean(ctx, e.own("posterior gap"), algo.OutputGap, e.trained.Model.(algo.Inferred).PosteriorGap)
	return err
}

// loss measures the loss that the weights descend. One that compares samples sees them in
// random order, as training does: those that lie beside each other may be alike.
func (e *evaluation) loss(ctx context.Context, r *report) (err error) {
	p := e.own("loss")
	p.random = algo.GroupOf(e.trained.Model) > 1
	r.Loss, err = e.mean(ctx, p, algo.OutputLoss, e.trained.Model.(algo.Losing).Loss)
	return err
}

// likelihood measures the mean log-likelihood, −⟨E(v)⟩ − log Z.
func (e *evaluation) likelihood(ctx context.Context, r *report) error {
	energy, err := e.mean(ctx, e.own("likelihood"), algo.OutputEnergy, e.energyOf)
	if err != nil {
		return err
	}
	z, err := e.logZ(ctx)
	if err != nil {
		return err
	}
	ll := -*energy - z.Value
	r.LL, r.LogZ = &ll, z
	if columns := e.trained.Settings.Columns; data.Scaled(columns) {
		table := ll - logScale(columns)
		r.LLTable = &table
	}
	return nil
}

// logScale is what the log density of a table's row is less than that of the point that it
// became: the logarithm of what the scale of its columns makes of a volume.
func logScale(columns []data.Column) (sum float64) {
	for _, c := range columns {
		sum += math.Log(c.SD)
	}
	return sum
}

// energyOf builds the energies of n samples.
func (e *evaluation) energyOf(n int) (*graph.Graph, error) {
	return e.trained.Model.(algo.Energetic).Energies(nn.Eval, n)
}

// mean is the mean of one of a graph's outputs over the samples of a pass.
func (e *evaluation) mean(ctx context.Context, over pass, output string, build trained.Builder) (mean *float64, err error) {
	look := trained.NewLook(e.trained, e.backend, over.phase, build, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	var values eval.Average
	_, err = e.each(ctx, over, func(x []float32, labels []int64) error {
		p, err := look.At(ctx, x, len(labels), int64(values.N()))
		if err != nil {
			return err
		}
		for _, v := range p.Output(output).F32() {
			values.Add(float64(v))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	m := values.Mean()
	if math.IsNaN(m) || math.IsInf(m, 0) {
		return nil, eval.NotFinite("training diverged: the mean %s of %d %s of %s/%s is %v", output, values.N(), trained.Noun(e.takes), e.o.data, e.o.split, m)
	}
	return &m, nil
}
