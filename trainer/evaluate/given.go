package main

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/trained"
)

// checkGiven reports --given of a model that cannot draw so.
func (e *evaluation) checkGiven() error {
	if !e.o.latents || has[algo.Encoder](e) && has[algo.Conditional](e) {
		return nil
	}
	return fmt.Errorf("the model of %s, of --algo %s, does not draw samples with given latents: leave --given out", e.o.run, e.trained.Settings.Algo)
}

// drawnGiven are samples of the model with the latents of random training pictures: the
// means of the posterior.
func (e *evaluation) drawnGiven(ctx context.Context) (s compare.Set, note string, err error) {
	pictures, err := e.originals(ctx)
	if err != nil {
		return s, "", err
	}
	plan, err := e.trained.Model.(algo.Conditional).SampleGiven(e.drawing())
	if err != nil {
		return s, "", err
	}
	look := trained.NewLook(e.trained, e.backend, "latents", e.trained.Model.(algo.Encoder).Encode, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	size := e.takes.Shape.Len()
	x, err := e.draw(ctx, setSamples, plan, func(from, to int) error {
		p, err := look.At(ctx, pictures[from*size:to*size], to-from, int64(from))
		if err != nil {
			return err
		}
		h := make([]float32, plan.Vars[0].Type.Shape.Len()) // of fewer than a whole batch, zeros stand for the others
		copy(h, p.Output(algo.OutputCode).F32())
		return e.trained.Give(plan, h)
	})
	e.symmetric(x)
	return compare.Set{Name: setSamples, X: x}, fmt.Sprintf("samples have the latents of random pictures of %s/%s (--given)", e.o.data, e.trainSplit()), err
}

// originals are random pictures of the split that was trained on, in the model's range:
// one for each sample, by its number, whatever else is drawn or read.
func (e *evaluation) originals(ctx context.Context) (x []float32, err error) {
	all, err := e.size(e.o.data, e.trainSplit())
	if err != nil {
		return nil, err
	}
	of := map[int][]int{} // the samples of a picture
	for i := range e.o.samples {
		u := philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: philox.SamplingGiven, Sample: uint32(i)}.Uint32(0)
		picture := int(uint64(u) * uint64(all) >> 32)
		of[picture] = append(of[picture], i)
	}
	at, size := 0, e.takes.Shape.Len()
	x = make([]float32, e.o.samples*size)
	_, err = e.each(ctx, pass{phase: "originals", data: e.o.data, split: e.trainSplit()}, func(some []float32, labels []int64) error {
		for i := range labels {
			for _, sample := range of[at+i] {
				copy(x[sample*size:], some[i*size:(i+1)*size])
			}
		}
		at += len(labels)
		return nil
	})
	return x, err
}
