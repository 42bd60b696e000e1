package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/hypercheck"
	"ebtrain/trainer/world"
)

// verifyFlag is the switch that verifies the gradient of a bi-level method, and
// trains nothing.
const verifyFlag = "verify-hypergradient"

// checkVerify reports a method whose gradient goes through no lower level.
func (o *options) checkVerify() error {
	if _, ok := o.model.Model().(algo.Bilevel); o.verify && !ok {
		return cliflag.Usage("--%s verifies the gradient through an unrolled lower level, and --algo %s has none: choose a preset of bism", verifyFlag, o.settings.Algo)
	}
	return nil
}

// played is how many ranks a process alone plays.
const played = 2

// checkPlayed reports a batch that they cannot share.
func checkPlayed(o *options, ranks int) error {
	if batch := o.settings.Batch; ranks == 1 && batch%played != 0 {
		return cliflag.Usage("--%s of one process plays %d ranks, which cannot share --batch %d equally: want a multiple of %d", verifyFlag, played, batch, played)
	}
	return nil
}

// warmSteps are steps of training before the check: an Adam that has no moments
// yet divides each gradient by its own size, and central differences do not see
// through what that does to the upper loss.
const warmSteps = 3

// verify checks the gradient of the first batch after a few steps, in
// float64, and writes what it finds on rank 0.
func verify(ctx context.Context, o *options, src data.Source, w *world.World, stdout io.Writer) (err error) {
	if err := w.Connect(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	batch, err := wholeBatch(ctx, o, src)
	if err != nil {
		return err
	}
	sharing := w.Sharing()
	if w.Size() == 1 {
		sharing = played
	}
	t, err := hypercheck.Run(ctx, hypercheck.Check{
		Model: o.model.Model(), Comm: w.Comm, Images: batch, Batch: o.settings.Batch, Seed: o.settings.Seed, Warm: warmSteps,
		Backend: func() (exec.Backend, error) {
			return device.Open(device.Config{Device: o.how.Device, Precision: device.F32, Threads: o.how.Threads, Sharing: sharing})
		},
	})
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		if err := t.Write(stdout); err != nil {
			return err
		}
	}
	if err := t.Err(); err != nil {
		return fmt.Errorf("--%s: %w", verifyFlag, err)
	}
	return nil
}

// wholeBatch is the first batch of all ranks together.
func wholeBatch(ctx context.Context, o *options, src data.Source) (x []float32, err error) {
	ld, err := loader.New(src, o.loaderConfig(0, 1, slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	b, err := ld.Next(ctx)
	if err != nil {
		return nil, err
	}
	return append(x, b.X...), nil
}
