package main

import (
	"context"
	"errors"
	"image"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// most reconstructions in the picture.
const shownPairs = 32

// reconName is what the picture shows, where samples are pictures.
func (e *evaluation) reconName() string {
	if !trained.Pictures(e.takes) {
		return ""
	}
	return "recon-" + e.o.split
}

// reconstruct measures reconstructions in both modes, beside a baseline, and
// draws some.
func (e *evaluation) reconstruct(ctx context.Context, r *report) error {
	model := e.trained.Model.(algo.Reconstructor)
	baseline, err := e.baseline(ctx)
	if err != nil {
		return err
	}
	r.RMSEMeanImage = &baseline
	for _, in := range []struct {
		phase string
		mode  nn.Mode
		into  **float64
	}{{"batch statistics", nn.BatchStats, &r.RMSEBatch}, {"running statistics", nn.Eval, &r.RMSERunning}} {
		rmse, err := e.rmse(ctx, r, model, in.mode, in.phase)
		if err != nil {
			return err
		}
		*in.into = &rmse
	}
	return nil
}

// baseline is the RMSE of predicting the mean training image, on as many
// images as the split holds.
func (e *evaluation) baseline(ctx context.Context) (rmse float64, err error) {
	mean := eval.NewMeanImage(e.takes.Shape.Len())
	_, err = e.each(ctx, e.split("mean image", e.o.data, e.trained.Settings.Split), func(x []float32, _ []int64) error { return mean.Add(x) })
	if err != nil {
		return 0, err
	}
	var sum eval.SquaredError
	image := mean.Mean()
	_, err = e.each(ctx, e.own("baseline"), func(x []float32, _ []int64) error { return sum.AddEach(image, x) })
	return sum.RMSE(), err
}

// rmse is that of reconstructions in one mode. Those of the first batch with
// batch statistics are drawn.
func (e *evaluation) rmse(ctx context.Context, r *report, model algo.Reconstructor, mode nn.Mode, phase string) (rmse float64, err error) {
	build := func(n int) (*graph.Graph, error) { return model.Reconstruct(mode, n) }
	look := trained.NewLook(e.trained, e.backend, "reconstruct", build, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	var sum eval.SquaredError
	total := int64(0)
	_, err = e.each(ctx, e.own(phase), func(x []float32, labels []int64) error {
		n := len(labels)
		p, err := look.At(ctx, x, n, total)
		if err != nil {
			return err
		}
		recon := p.Output(algo.OutputRecon).F32()
		if total == 0 && mode == nn.BatchStats && e.picture != "" && trained.Pictures(e.takes) {
			pairs, err := e.pairs(x, recon, n)
			if err != nil {
				return err
			}
			r.Picture = e.keepPicture(pairs)
		}
		total += int64(n)
		return sum.Add(recon, x)
	})
	return sum.RMSE(), err
}

// pairs are inputs above their reconstructions.
func (e *evaluation) pairs(x, recon []float32, n int) (image.Image, error) {
	show := min(n, shownPairs)
	return picture.SideBySide(trained.Pix(x, show, e.takes), trained.Pix(recon, show, e.takes), 0)
}
