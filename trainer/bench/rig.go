package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/processors"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/loop"
)

// rig is what a rank measures a case with: the loop of train, on the ranks of the case.
type rig struct {
	trainer *loop.Trainer
	loader  *loader.Loader
	seen    *observer
	on      processors.Set // of all ranks of this machine
}

// newRig is nil on a rank that has no part in the case.
func (b *bench) newRig(ctx context.Context, c *Case) (_ *rig, err error) {
	if b.w.Rank() >= c.Ranks {
		return nil, nil
	}
	var comm collective.Comm
	if g := b.groups[c.Ranks]; g != nil {
		comm = g
	}
	return b.rigOf(ctx, c, b.w.Rank(), comm)
}

// rigOf is that of a rank of a group.
func (b *bench) rigOf(ctx context.Context, c *Case, rank int, comm collective.Comm) (_ *rig, err error) {
	r := &rig{seen: &observer{}, on: b.w.Processors()}
	log := slog.New(slog.DiscardHandler)
	r.loader, err = loader.New(b.src, loader.Config{Seed: b.o.settings.Seed, Batch: c.Batch, Rank: rank, World: c.Ranks, Tail: loader.Carry,
		Range: b.o.model.Model().Takes().Range, Shuffle: true, Flip: b.o.settings.Flip, Prefetch: b.o.prefetch})
	if err != nil {
		return nil, err
	}
	memory, err := device.Memory(b.backend)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.trainer, err = loop.New(ctx, loop.Config{
		Batch: c.Batch, Steps: math.MaxInt64, Seed: b.o.settings.Seed, Remat: b.o.how.Remat, ShardOptimizer: b.o.how.ShardMoments, Traceable: c.Ranks > 1,
		MaxBytes: memory.Share(b.w.LocalSize()) / int64(len(b.r.Cases)+len(b.beside)),
	}, loop.Parts{Model: b.o.model.Model(), Backend: b.backend, Comm: comm, Loader: r.loader, Log: log, Observer: r.seen})
	if err != nil {
		err = errors.Join(err, r.close())
		if short, ok := errors.AsType[*exec.MemoryError](err); ok {
			return nil, fmt.Errorf("a step does not fit beside those of the other %d cases: %w: choose a smaller --batch or fewer --ranks", len(b.r.Cases)-1, short)
		}
		return nil, err
	}
	return r, nil
}

func (r *rig) close() error {
	var errs []error
	if r.trainer != nil {
		errs = append(errs, r.trainer.Close())
	}
	if r.loader != nil {
		errs = append(errs, r.loader.Close())
	}
	return errors.Join(errs...)
}

// parts are what a step took on one rank, in microseconds.
type parts struct {
	Compute, Comm, Data float64
	Busy                float64 // of processors, of all threads
}

// observer keeps the parts of steps, and the losses of the first. It implements
// loop.Observer.
type observer struct {
	parts []parts
	first map[string]float64
	busy  time.Duration // of the process, until the last step's end
}

// us is so many microseconds.
func us(d time.Duration) float64 { return float64(d) / 1e3 }

func (o *observer) Stepped(r loop.Record) error {
	busy := processors.Own()
	o.parts = append(o.parts, parts{us(r.StepTime - r.DataTime - r.CommTime), us(r.CommTime), us(r.DataTime), us(busy - o.busy)})
	o.busy = busy
	if o.first == nil {
		o.first = map[string]float64{}
		for i, name := range r.Names {
			if name != algo.ReportStop {
				o.first[name] = r.Values[i]
			}
		}
	}
	return nil
}

func (o *observer) Started(int64) error               { return nil }
func (o *observer) Sampled(int64, *exec.Tensor) error { return nil }
func (o *observer) Saving(int64) error                { return nil }
func (o *observer) Saved(int64) error                 { return nil }
func (o *observer) Ended(int64) error                 { return nil }
