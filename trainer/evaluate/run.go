package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"ebtrain/ddp/exec"
	"ebtrain/launch/plainlog"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/trained"
)

// evaluation is one run of evaluate.
type evaluation struct {
	o       options
	backend exec.Backend
	trained *trained.Run
	takes   algo.Inputs // of the model
	show    *progressbar.Phases
	picture string // file of the picture that is made; "" for none
	z       *logZ  // the normaliser, once it was asked for
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	backend, err := device.Open(device.Config{Device: o.device, Precision: device.F32, Threads: o.threads})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	run, err := trained.Load(o.run, o.step, backend, slog.New(plainlog.New("evaluate", stderr)))
	if err != nil {
		return err
	}
	if o.data == "" {
		o.data = run.Config.Flags["data"]
	}
	e := &evaluation{o: o, backend: backend, trained: run, takes: run.Model.Takes(), show: progressbar.NewPhases(stderr)}
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

// measure measures what was asked for.
func (e *evaluation) measure(ctx context.Context) (*report, error) {
	n, err := e.count(e.o.data, e.o.split)
	if err != nil {
		return nil, err
	}
	all, err := e.chosen()
	if err != nil {
		return nil, err
	}
	if err := e.prepare(all); err != nil {
		return nil, err
	}
	r := &report{
		Run: e.o.run, Step: e.trained.State.Step, Data: e.o.data, Split: e.o.split, Images: int(n),
		noun: trained.Noun(e.takes),
	}
	for _, m := range all {
		if err := m.take(e, ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// prepare opens every split that will be read, and decides where the picture goes,
// so that what cannot be read or written is reported before the work is done.
func (e *evaluation) prepare(all []measure) error {
	for _, m := range all {
		if m.trains {
			if _, err := e.trained.Open(e.o.data, e.trained.Settings.Split); err != nil {
				return err
			}
		}
		if m.picture != nil {
			if err := e.place(m.picture(e)); err != nil {
				return err
			}
		}
	}
	if e.o.ood != "" {
		_, err := e.trained.Open(e.o.ood, oodSplit)
		return err
	}
	return nil
}
