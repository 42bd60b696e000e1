package main

import (
	"context"
	"errors"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// most reconstructions in the picture.
const shownPairs = 32

// reconstruct measures reconstructions in both modes, beside a baseline, and
// draws some.
func (e *evaluation) reconstruct(ctx context.Context, r *report) error {
	model, ok := e.trained.Model.(algo.Reconstructor)
	if !ok {
		return nil
	}
	baseline, n, err := e.baseline(ctx)
	if err != nil {
		return err
	}
	r.Images, r.RMSEMeanImage = n, &baseline
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
func (e *evaluation) baseline(ctx context.Context) (rmse float64, n int, err error) {
	var mean *eval.MeanImage
	_, err = e.each(ctx, "mean image", e.o.data, e.trained.Settings.Split, func(x []float32, n int) error {
		if mean == nil {
			mean = eval.NewMeanImage(len(x) / n)
		}
		return mean.Add(x)
	})
	if err != nil {
		return 0, 0, err
	}
	var sum eval.SquaredError
	image := mean.Mean()
	n, err = e.each(ctx, "baseline", e.o.data, e.o.split, func(x []float32, _ int) error { return sum.AddEach(image, x) })
	return sum.RMSE(), n, err
}

// rmse is that of reconstructions in one mode. Those of the first batch with
// batch statistics are drawn.
func (e *evaluation) rmse(ctx context.Context, r *report, model algo.Reconstructor, mode nn.Mode, phase string) (rmse float64, err error) {
	build := func(n int) (*graph.Graph, error) { return model.Reconstruct(mode, n) }
	look := trained.NewLook(e.trained, e.backend, "reconstruct", build, e.o.seed)
	defer func() { err = errors.Join(err, look.Close()) }()
	var sum eval.SquaredError
	total := int64(0)
	_, err = e.each(ctx, phase, e.o.data, e.o.split, func(x []float32, n int) error {
		p, err := look.At(ctx, x, n, total)
		if err != nil {
			return err
		}
		recon := p.Output(algo.OutputRecon).F32()
		if total == 0 && mode == nn.BatchStats && e.picture != "" {
			r.Picture = e.picture
			if err := e.drawPairs(x, recon, n); err != nil {
				return err
			}
		}
		total += int64(n)
		return sum.Add(recon, x)
	})
	return sum.RMSE(), err
}

// drawPairs writes inputs above their reconstructions.
func (e *evaluation) drawPairs(x, recon []float32, n int) error {
	show := min(n, shownPairs)
	pairs, err := picture.SideBySide(trained.Pix(x, show, e.takes), trained.Pix(recon, show, e.takes), 0)
	if err != nil {
		return err
	}
	return picture.WritePNG(e.picture, pairs)
}
