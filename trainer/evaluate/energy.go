package main

import (
	"context"
	"errors"

	"ebtrain/data/loader"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/trained"
)

// feed gives use batches of samples.
type feed func(use func(x []float32, n int) error) error

// energies measures the energies of the data, of samples, of noise and of
// --ood, and how well the others are told from the data.
func (e *evaluation) energies(ctx context.Context, r *report) (err error) {
	look := trained.NewLook(e.trained, e.backend, "energies", e.energyOf, e.o.seed)
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
		return logits, r.keepEnergies(name, energies)
	}
	data, err := judge("data", e.feed(ctx, e.own("energies")))
	if err != nil {
		return err
	}
	for _, other := range e.others(ctx) {
		logits, err := judge(other.name, other.from)
		if err != nil {
			return err
		}
		if err := r.keepAUROC(other.name, data, logits); err != nil {
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
	if s, ok := e.trained.Model.(algo.Sampler); ok {
		all = append(all, other{otherSamples, e.draws(ctx, s)})
	}
	all = append(all, other{otherNoise, e.noise(ctx)})
	for _, f := range e.o.ood {
		all = append(all, other{f.name, func(use func([]float32, int) error) error {
			split, err := foreignSplit(f)
			if err != nil {
				return err
			}
			return e.feed(ctx, e.split(f.name, f.data, split))(use)
		}})
	}
	return all
}

// draws feeds --batch samples of the model. They are draws where it tells these from
// others: means have less energy than any data.
func (e *evaluation) draws(ctx context.Context, s algo.Sampler) feed {
	build := s.Sample
	if d, ok := s.(algo.Drawn); ok {
		build = d.SampleDrawn
	}
	return func(use func(x []float32, n int) error) error {
		plan, err := build(trained.Modes[e.o.stats], e.o.batch)
		if err != nil {
			return err
		}
		x, err := e.trained.Draw(ctx, e.backend, trained.Draw{Plan: plan, Seed: e.o.seed, Smaller: "--batch", Each: func(done, of int) {
			e.progress("samples", "transitions/s", int64(done), int64(of), "a smaller --batch, or without "+measureEnergy+" among --measures")
		}})
		if err != nil {
			return err
		}
		return use(x.F32(), e.o.batch)
	}
}

// feed feeds the samples of a pass.
func (e *evaluation) feed(ctx context.Context, p pass) feed {
	return func(use func(x []float32, n int) error) error {
		_, err := e.each(ctx, p, func(x []float32, labels []int64) error { return use(x, len(labels)) })
		return err
	}
}

// noise feeds as many samples of noise as there are data that are measured: of pictures
// values are uniform on the model's range, of points normal, with the data's mean and
// deviation of each column, since their range is anybody's.
func (e *evaluation) noise(ctx context.Context) feed {
	return func(use func(x []float32, n int) error) error {
		draw, err := e.noiseOf(ctx)
		if err != nil {
			return err
		}
		all, err := e.count(e.o.data, e.o.split)
		if err != nil {
			return err
		}
		for from := int64(0); from < all; from += int64(e.o.batch) {
			n := min(int64(e.o.batch), all-from)
			x := make([]float32, 0, int(n)*e.takes.Shape.Len())
			for i := range n {
				x = append(x, draw(philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: philox.SamplingUniform, Sample: uint32(from + i)})...)
			}
			if err := use(x, int(n)); err != nil {
				return err
			}
		}
		return nil
	}
}

// noiseOf draws a sample of noise, by the name of its draw.
func (e *evaluation) noiseOf(ctx context.Context) (func(philox.Name) []float32, error) {
	d := e.takes.Shape.Len()
	if trained.Points(e.takes) {
		var m control.Moments
		_, err := e.each(ctx, e.own("means"), func(x []float32, _ []int64) error {
			m.Add(x, d)
			return nil
		})
		return m.Normal, err
	}
	low := -1.0
	if e.takes.Range == loader.Unit {
		low = 0
	}
	u := make([]float64, d)
	return func(name philox.Name) []float32 {
		x := make([]float32, d)
		name.Uniform(u)
		for i, v := range u {
			x[i] = float32(low + (1-low)*v)
		}
		return x
	}, nil
}
