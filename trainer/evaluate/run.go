package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/job"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/picture"
)

// evaluation is one run of evaluate.
type evaluation struct {
	o       options
	backend exec.Backend
	trained *job.Trained
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	backend, err := job.OpenBackend(o.device, job.F32, o.threads, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	trained, err := job.LoadTrained(o.run, backend, slog.New(job.Warnings("evaluate", stderr)))
	if err != nil {
		return err
	}
	if o.data == "" {
		o.data = trained.Settings.Data
	}
	e := &evaluation{o: o, backend: backend, trained: trained}
	r, err := e.measure(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return r.writeJSON(stdout)
	}
	return r.writeTable(stdout)
}

// measure measures everything.
func (e *evaluation) measure(ctx context.Context) (*report, error) {
	if err := e.checkData(); err != nil {
		return nil, err
	}
	r := &report{Run: e.o.run, Step: e.trained.State.Step, Data: e.o.data, Split: e.o.split}
	baseline, n, err := e.baseline(ctx)
	if err != nil {
		return nil, err
	}
	r.Images, r.RMSEMeanImage = n, baseline
	logits, err := e.judgeData(ctx, r)
	if err != nil {
		return nil, err
	}
	return r, e.judgeOthers(ctx, r, logits)
}

// checkData opens every split that will be read, before anything is written.
func (e *evaluation) checkData() error {
	splits := [][2]string{{e.o.data, e.o.split}, {e.o.data, e.trained.Settings.Split}}
	if e.o.ood != "" {
		splits = append(splits, [2]string{e.o.ood, "test"})
	}
	for _, s := range splits {
		if _, err := e.open(s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// open opens a split whose pictures the model takes.
func (e *evaluation) open(name, split string) (data.Source, error) {
	src, err := dataset.Open(name, split)
	if err != nil {
		return nil, err
	}
	return src, e.fits(name, src.Schema())
}

// baseline is the RMSE of predicting the mean training image, on as many
// images as the split holds.
func (e *evaluation) baseline(ctx context.Context) (rmse float64, n int, err error) {
	var mean *eval.MeanImage
	_, err = e.each(ctx, e.o.data, e.trained.Settings.Split, func(x []float32, n int) error {
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
	n, err = e.each(ctx, e.o.data, e.o.split, func(x []float32, _ int) error { return sum.AddEach(image, x) })
	return sum.RMSE(), n, err
}

// judgeData measures reconstruction in both modes and the energies of the
// data, and returns the logits.
func (e *evaluation) judgeData(ctx context.Context, r *report) ([]float64, error) {
	var logits, energies []float64
	for _, mode := range []nn.Mode{nn.BatchStats, nn.Eval} {
		jury := job.NewJury(e.trained, e.backend, mode)
		var sum eval.SquaredError
		logits, energies = nil, nil
		first := true
		_, err := e.each(ctx, e.o.data, e.o.split, func(x []float32, n int) error {
			j, err := jury.Judge(ctx, x, n)
			if err != nil {
				return err
			}
			logits, energies = appendAll(logits, j.Logit), appendAll(energies, j.Energy)
			if first && mode == nn.BatchStats {
				r.Picture = filepath.Join(e.o.run, "samples", fmt.Sprintf("recon-%s-step-%08d.png", e.o.split, r.Step))
				if err := e.drawPairs(r.Picture, x, j.Recon, n); err != nil {
					return err
				}
			}
			first = false
			return sum.Add(j.Recon, x)
		})
		if err = errors.Join(err, jury.Close()); err != nil {
			return nil, err
		}
		if mode == nn.BatchStats {
			r.RMSEBatch = sum.RMSE()
		} else {
			r.RMSERunning = sum.RMSE()
		}
	}
	return logits, r.addEnergies("data", energies)
}

// judgeOthers measures the energies of samples, of noise and of --ood, and how
// well they are told from the data, whose logits are given.
func (e *evaluation) judgeOthers(ctx context.Context, r *report, data []float64) (err error) {
	jury := job.NewJury(e.trained, e.backend, nn.Eval)
	defer func() { err = errors.Join(err, jury.Close()) }()
	judge := func(name string, feed func(use func(x []float32, n int) error) error) error {
		var logits, energies []float64
		err := feed(func(x []float32, n int) error {
			j, err := jury.Judge(ctx, x, n)
			logits, energies = appendAll(logits, j.Logit), appendAll(energies, j.Energy)
			return err
		})
		if err != nil {
			return err
		}
		if err := r.addEnergies(name, energies); err != nil {
			return err
		}
		return r.addAUROC(name, data, logits)
	}
	err = judge("samples", func(use func([]float32, int) error) error {
		images, err := job.Samples(ctx, e.trained, e.backend, nn.BatchStats, e.o.batch, e.o.seed)
		if err != nil {
			return err
		}
		return use(images.F32(), e.o.batch)
	})
	if err != nil {
		return err
	}
	err = judge("noise", func(use func([]float32, int) error) error { return use(e.noise(), e.o.batch) })
	if err != nil || e.o.ood == "" {
		return err
	}
	return judge("ood", func(use func([]float32, int) error) error {
		_, err := e.each(ctx, e.o.ood, "test", use)
		return err
	})
}

// noise is a batch of images of pixels uniform on (−1, 1).
func (e *evaluation) noise() []float32 {
	net := e.trained.Settings.BiDVL.Net
	u := make([]float64, net.Channels*net.Size*net.Size)
	x := make([]float32, 0, e.o.batch*len(u))
	for i := range e.o.batch {
		philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: 1, Sample: uint32(i)}.Uniform(u)
		for _, v := range u {
			x = append(x, float32(2*v-1))
		}
	}
	return x
}

// each gives use the images of a split in order, some at a time, and counts
// them.
func (e *evaluation) each(ctx context.Context, name, split string, use func(x []float32, n int) error) (total int, err error) {
	src, err := e.open(name, split)
	if err != nil {
		return 0, err
	}
	ld, err := loader.New(src, loader.Config{Batch: int(min(int64(e.o.batch), src.Len())), World: 1, Tail: loader.Mask, Passes: 1, Prefetch: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	for {
		b, err := ld.Next(ctx)
		if errors.Is(err, io.EOF) || e.o.limit > 0 && int64(total) >= e.o.limit {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n := 0
		for _, w := range b.Weight {
			if w > 0 {
				n++
			}
		}
		if e.o.limit > 0 {
			n = int(min(int64(n), e.o.limit-int64(total)))
		}
		total += n
		if err := use(b.X[:len(b.X)/len(b.Weight)*n], n); err != nil {
			return total, err
		}
	}
}

// fits says whether the model takes the pictures of a data set.
func (e *evaluation) fits(name string, s data.Schema) error {
	net := e.trained.Settings.BiDVL.Net
	if s.C != net.Channels || s.H != net.Size || s.W != net.Size {
		return fmt.Errorf("%s holds pictures of %s, and the model of %s takes %d×%d×%d: make shards with mkshards --size %d --channels %d",
			name, s, e.o.run, net.Channels, net.Size, net.Size, net.Size, net.Channels)
	}
	return nil
}

// drawPairs writes inputs above their reconstructions.
func (e *evaluation) drawPairs(path string, x, recon []float32, n int) error {
	net := e.trained.Settings.BiDVL.Net
	show := min(n, 32)
	images := func(pix []float32) picture.Images {
		return picture.Signed(pix[:show*net.Channels*net.Size*net.Size], show, net.Channels, net.Size, net.Size)
	}
	pairs, err := picture.SideBySide(images(x), images(recon), 0)
	if err != nil {
		return err
	}
	return picture.WritePNG(path, pairs)
}

func appendAll(dst []float64, src []float32) []float64 {
	for _, v := range src {
		dst = append(dst, float64(v))
	}
	return dst
}
