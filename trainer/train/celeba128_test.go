package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/data/importer"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/job"
	"ebtrain/trainer/loop"
)

// watcher keeps the records of a run. It implements loop.Observer.
type watcher struct{ records []loop.Record }

func (w *watcher) Started(int64) error               { return nil }
func (w *watcher) Stepped(r loop.Record) error       { w.records = append(w.records, r); return nil }
func (w *watcher) Sampled(int64, *exec.Tensor) error { return nil }
func (w *watcher) Saving(int64) error                { return nil }
func (w *watcher) Ended(int64) error                 { return nil }

// The preset bidvl-celeba128, narrow, on real pictures: its losses on two ranks
// are those on one.
func TestCelebA128OnTwoRanks(t *testing.T) {
	const originals = "../../../shared/data/celeba"
	if testing.Short() {
		t.Skip("short: no residual networks at 128x128")
	}
	if _, err := os.Stat(originals); err != nil {
		t.Skipf("no real pictures: %v", err)
	}
	shards := celebaShards(t, originals, 64)
	one, two := celeba128(t, shards, 1), celeba128(t, shards, 2)
	if len(one) != 2 || len(two) != 2 {
		t.Fatalf("%d and %d steps, want 2", len(one), len(two))
	}
	for i := range one {
		for j, name := range one[i].Names {
			got, want := two[i].Values[j], one[i].Values[j]
			if !(math.Abs(got-want) <= 1e-4*(1+math.Abs(want))) {
				t.Errorf("step %d: %s is %v on two ranks, %v on one", i, name, got, want)
			}
		}
	}
}

// celebaShards makes shards of the first pictures of each split, as mkshards
// celeba --crop 160 --size 128.
func celebaShards(t *testing.T, originals string, limit int64) string {
	t.Helper()
	set, err := importer.CelebA(filepath.Join(originals, "img_align_celeba_subset9000.zip"), filepath.Join(originals, "list_eval_partition.txt"),
		importer.Geometry{Crop: 160, Size: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	out := filepath.Join(t.TempDir(), "celeba128")
	if _, err := importer.Run(t.Context(), set, importer.Options{Out: out, Limit: limit}); err != nil {
		t.Fatal(err)
	}
	return out
}

// celeba128 trains for two steps on world ranks in this process.
func celeba128(t *testing.T, shards string, world int) []loop.Record {
	t.Helper()
	comms, err := host.NewLocal(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	out, watch := filepath.Join(t.TempDir(), "run"), &watcher{}
	errs := make([]error, world)
	var wg sync.WaitGroup
	for rank := range world {
		wg.Go(func() {
			parts := loop.Parts{Log: slog.New(slog.DiscardHandler)}
			if rank == 0 {
				parts.Observer = watch
			}
			if world > 1 {
				parts.Comm = comms[rank]
			}
			if errs[rank] = trainRank(t, parts, rank, world, shards, out); errs[rank] != nil {
				comms[rank].Abort(errs[rank])
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return watch.records
}

func trainRank(t *testing.T, parts loop.Parts, rank, world int, shards, out string) (err error) {
	args := fmt.Sprintf("--preset bidvl-celeba128 --width 4 --batch 4 --steps 2 --samples 0 --check-every 1 --data %s --out %s", shards, out)
	o, _, err := parse(strings.Fields(args), io.Discard)
	if err != nil {
		return err
	}
	src, err := openData(o)
	if err != nil {
		return err
	}
	if parts.Algorithm, err = o.settings.Algorithm(); err != nil {
		return err
	}
	if parts.Backend, err = job.OpenBackend("cpu", 1, world); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Backend.Close()) }()
	parts.Loader, err = loader.New(src, loader.Config{Seed: 1, Batch: o.settings.Batch, Rank: rank, World: world, Tail: loader.Carry, Shuffle: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Loader.Close()) }()
	return runLoop(t.Context(), o, parts)
}
