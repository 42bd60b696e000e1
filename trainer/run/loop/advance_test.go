package loop_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/data/loader"
	"ebtrain/data/synth"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/loop"
)

// TestAdvance: a few steps at a time, one of them traced, are the steps of Run.
func TestAdvance(t *testing.T) {
	want := job{world: 2, config: loop.Config{Batch: 4, Steps: 6, Seed: 1}}
	if _, errs := want.run(t); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	seen, errs := &watch{}, make([]error, 2)
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			if errs[r] = advance(t.Context(), r, c, seen); errs[r] != nil {
				c.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	for r, c := range comms {
		if err := errors.Join(errs[r], c.Close()); err != nil {
			t.Error(err)
		}
	}
	if len(seen.records) != 6 {
		t.Fatalf("%d steps, want 6", len(seen.records))
	}
	for i, r := range seen.records {
		stop := slices.Index(r.Names, algo.ReportStop)
		got, other := slices.Delete(slices.Clone(r.Values), stop, stop+1), slices.Delete(slices.Clone(want.seen.records[i].Values), stop, stop+1)
		if r.Step != int64(i) || !slices.Equal(got, other) {
			t.Errorf("step %d (number %d): %v, Run has %v", i, r.Step, got, other)
		}
	}
}

// advance does 6 steps: 2, a traced one, none, and 3.
func advance(ctx context.Context, rank int, comm *host.Comm, seen *watch) (err error) {
	alg := bidvl.CIFAR10().Config
	alg.Net.Width, alg.Net.Latent = 4, 3
	pictures, err := synth.Open(synth.Config{Train: 64}, "train")
	if err != nil {
		return err
	}
	ld, err := loader.New(pictures, loader.Config{Seed: 1, Batch: 4, Shuffle: true, Rank: rank, World: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	p := loop.Parts{Model: alg, Backend: backend, Comm: comm, Loader: ld, Log: slog.New(slog.DiscardHandler)}
	if rank == 0 {
		p.Observer = seen
	}
	tr, err := loop.New(ctx, loop.Config{Batch: 4, Steps: 1000, Seed: 1, Traceable: true}, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	if err := tr.Advance(ctx, 2); err != nil {
		return err
	}
	spans, err := tr.Trace(ctx)
	if err != nil {
		return err
	}
	if len(spans) != 2 || len(spans[0]) == 0 || len(spans[1]) == 0 {
		return errors.New("a trace without the spans of both ranks")
	}
	return errors.Join(tr.Advance(ctx, 0), tr.Advance(ctx, 3), tr.Compare(ctx))
}
