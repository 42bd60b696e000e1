package main

import (
	"context"
	"errors"

	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/trained"
)

// feed gives use batches of samples.
type feed func(use func(x []float32, n int) error) error

// energies measures the energies of the data, of samples, of noise and of
// --ood, and how well the others are told from the data.
func (e *evaluation) energies(ctx context.Context, r *report) (err error) {
	model, ok := e.trained.Model.(algo.Energetic)
	if !ok {
		return nil
	}
	build := func(n int) (*graph.Graph, error) { return model.Energies(nn.Eval, n) }
	look := trained.NewLook(e.trained, e.backend, "energies", build, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	judge := func(name string, from feed) (logits []float64, err error) {
		var energies []float64
		err = from(func(x []float32, n int) error {
			p, err := look.At(ctx, x, n, int64(len(logits)))
			if err == nil {
				logits = appendAll(logits, p.Output(algo.OutputLogit).F32())
				energies = appendAll(energies, p.Output(algo.OutputEnergy).F32())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return logits, r.addEnergies(name, energies)
	}
	data, err := judge("data", e.split(ctx, "energies", e.o.data, e.o.split))
	if err != nil {
		return err
	}
	r.Images = len(data)
	for _, other := range e.others(ctx) {
		logits, err := judge(other.name, other.from)
		if err != nil {
			return err
		}
		if err := r.addAUROC(other.name, data, logits); err != nil {
			return err
		}
	}
	return nil
}

// other is what the data are told from.
type other struct {
	name string
	from feed
}

func (e *evaluation) others(ctx context.Context) []other {
	var all []other
	if _, ok := e.trained.Model.(algo.Sampler); ok {
		all = append(all, other{"samples", func(use func([]float32, int) error) error {
			progress := func(done, of int) { e.show.Progress("samples", "transitions/s", int64(done), int64(of)) }
			x, err := e.trained.Samples(ctx, e.backend, nn.BatchStats, e.o.batch, e.o.seed, progress)
			if err != nil {
				return err
			}
			return use(x.F32(), e.o.batch)
		}})
	}
	all = append(all, other{"noise", func(use func([]float32, int) error) error { return use(e.noise(), e.o.batch) }})
	if e.o.ood != "" {
		all = append(all, other{"ood", e.split(ctx, "ood", e.o.ood, "test")})
	}
	return all
}

// split feeds a split of a data set, shown as phase.
func (e *evaluation) split(ctx context.Context, phase, name, split string) feed {
	return func(use func(x []float32, n int) error) error {
		_, err := e.each(ctx, phase, name, split, use)
		return err
	}
}

// noise is a batch of samples whose values are uniform on the model's range.
func (e *evaluation) noise() []float32 {
	low := -1.0
	if e.takes.Range == loader.Unit {
		low = 0
	}
	u := make([]float64, e.takes.Shape.Len())
	x := make([]float32, 0, e.o.batch*len(u))
	for i := range e.o.batch {
		philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: 1, Sample: uint32(i)}.Uniform(u)
		for _, v := range u {
			x = append(x, float32(low+(1-low)*v))
		}
	}
	return x
}
