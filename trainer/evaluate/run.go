package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/trained"
)

// evaluation is one run of evaluate.
type evaluation struct {
	o       options
	backend exec.Backend
	trained *trained.Run
	takes   algo.Inputs // of the model
	show    *progressbar.Phases
	picture string // file of inputs above their reconstructions; "" for none
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	backend, err := device.Open(o.device, device.F32, o.threads, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	run, err := trained.Load(o.run, backend, slog.New(plainlog.New("evaluate", stderr)))
	if err != nil {
		return err
	}
	if o.data == "" {
		o.data = run.Config.Flags["data"]
	}
	e := &evaluation{o: o, backend: backend, trained: run, takes: run.Model.Takes(), show: progressbar.NewPhases(stderr)}
	if err := e.place(); err != nil {
		return err
	}
	r, err := e.measure(ctx)
	e.show.End()
	if err != nil {
		return err
	}
	if o.json {
		return r.writeJSON(stdout)
	}
	return r.writeTable(stdout)
}

// place decides where the picture goes, and reports a place that cannot be
// written before the work is done.
func (e *evaluation) place() error {
	if _, ok := e.trained.Model.(algo.Reconstructor); !ok || !e.wants(measureRMSE) || !trained.Pictures(e.takes) {
		return nil
	}
	switch e.o.picture {
	case noPicture:
		return nil
	case "":
		name := fmt.Sprintf("recon-%s-step-%08d.png", e.o.split, e.trained.State.Step)
		e.picture = filepath.Join(rundir.Layout(e.o.run).Samples(), name)
	default:
		e.picture = e.o.picture
	}
	if err := picture.CheckFolder(filepath.Dir(e.picture)); err != nil {
		return fmt.Errorf("the picture %s cannot be written: %w: give another place with --picture FILE.png, or --picture %s", e.picture, err, noPicture)
	}
	return nil
}

// wants says whether a measure was asked for.
func (e *evaluation) wants(measure string) bool {
	return e.o.measures == allMeasures || slices.Contains(strings.Split(e.o.measures, ","), measure)
}

// measure measures all that the model can be asked.
func (e *evaluation) measure(ctx context.Context) (*report, error) {
	if err := e.checkData(); err != nil {
		return nil, err
	}
	r := &report{Run: e.o.run, Step: e.trained.State.Step, Data: e.o.data, Split: e.o.split}
	for _, m := range []struct {
		name string
		run  func(context.Context, *report) error
	}{
		{measureRMSE, e.reconstruct}, {measureEnergy, e.energies}, {measureFisher, e.fisher}, {measureGap, e.gap}, {measureLL, e.likelihood},
	} {
		if !e.wants(m.name) {
			continue
		}
		if err := m.run(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
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

// each gives use the samples of a split in order, some at a time, and counts
// them; phase is what it is shown as.
func (e *evaluation) each(ctx context.Context, phase, name, split string, use func(x []float32, n int) error) (total int, err error) {
	src, err := e.open(name, split)
	if err != nil {
		return 0, err
	}
	ld, err := loader.New(src, loader.Config{Batch: int(min(int64(e.o.batch), src.Len())), World: 1, Range: e.takes.Range, Tail: loader.Mask, Passes: 1, Prefetch: 1})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	all := src.Len()
	if e.o.limit > 0 {
		all = min(all, e.o.limit)
	}
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
		e.show.Progress(phase, "pictures/s", int64(total), all)
	}
}

// fits says whether the model takes the samples of a data set.
func (e *evaluation) fits(name string, s data.Schema) error {
	want := e.takes.Shape
	if s.C != want.At(0) || s.H != want.At(1) || s.W != want.At(2) {
		return fmt.Errorf("%s holds pictures of %s, and the model of %s takes %d×%d×%d: make shards with mkshards --size %d --channels %d",
			name, s, e.o.run, want.At(0), want.At(1), want.At(2), want.At(1), want.At(0))
	}
	return nil
}

func appendAll(dst []float64, src []float32) []float64 {
	for _, v := range src {
		dst = append(dst, float64(v))
	}
	return dst
}
