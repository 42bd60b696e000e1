package main

import (
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/loader"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
)

// Every flag reaches the loader and the loop: each is unlike its default, and unlike the
// others.
func TestPlan(t *testing.T) {
	o := model(t, "--seed 7 --batch 12 --flip --shuffle-memory 5 --prefetch 9 --on-bad-data skip --steps 11 --deterministic --resume "+
		"--ckpt-every 13 --ckpt-keep 14 --sample-every 15 --samples 16 --check-every 17 --profile 6 --remat --shard-optimizer")
	got := o.loaderConfig(1, 3, nil)
	if got.Quarantine == nil {
		t.Error("--on-bad-data skip does not reach the loader")
	}
	got.Quarantine = nil
	if want := (loader.Config{Seed: 7, Batch: 12, Rank: 1, World: 3, Range: loader.Symmetric, Shuffle: true, ShuffleMemory: 5 << 20, Flip: true, Prefetch: 9}); !reflect.DeepEqual(got, want) {
		t.Errorf("the loader gets %+v, want %+v", got, want)
	}
	l := rundir.Layout("a")
	want := loop.Config{
		Batch: 12, Steps: 11, Seed: 7, Digest: "d", Shards: 4, CkptDir: l.Ckpt(), CkptEvery: 13, CkptKeep: 14, Resume: true, SampleEvery: 15, SampleCount: 16,
		CheckEvery: 17, Profile: loop.Profile{File: l.Profile(6), Step: 6}, MaxBytes: 8, Remat: true, ShardOptimizer: true,
	}
	if got := o.loopConfig("d", 8); !reflect.DeepEqual(got, want) {
		t.Errorf("the loop gets %+v, want %+v", got, want)
	}
}

// What no flag says is safe: no chance that mirrors, damage that is told, no profile, and
// three checkpoints.
func TestPlanByDefault(t *testing.T) {
	o := model(t, "")
	if c := o.loaderConfig(0, 1, nil); !reflect.DeepEqual(c, loader.Config{Seed: 1, Batch: o.settings.Batch, World: 1, Shuffle: true, Prefetch: 2}) {
		t.Errorf("the loader gets %+v", c)
	}
	want := loop.Config{Batch: o.settings.Batch, Steps: o.steps, Seed: 1, CkptDir: rundir.Layout("a").Ckpt(), CkptEvery: 100, CkptKeep: 3, SampleEvery: 100, SampleCount: 64, CheckEvery: 100}
	if got := o.loopConfig("", 0); !reflect.DeepEqual(got, want) {
		t.Errorf("the loop gets %+v, want %+v", got, want)
	}
}

// --ckpt-keep keeps the newest.
func TestCheckpointsKept(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out, "--steps", "5", "--ckpt-every", "1", "--ckpt-keep", "2"); err != nil {
		t.Fatal(err)
	}
	if steps, err := ckpt.Steps(rundir.Layout(out).Ckpt()); err != nil || !slices.Equal(steps, []int64{4, 5}) {
		t.Errorf("checkpoints of the steps %v, %v, want 4 and 5", steps, err)
	}
}

// A step has the memory of its rank's share of the machine, and no more.
func TestStepHasItsShare(t *testing.T) {
	o := model(t, "--width 4 --latent 3 --batch 4 --steps 1 --samples 0 --data synth:train=32")
	o.out = filepath.Join(t.TempDir(), "a")
	parts := partsOf(t, o)
	const tooMany = math.MaxInt32 // that share this machine
	if err := runLoop(t.Context(), o, parts, tooMany); err == nil || !strings.Contains(err.Error(), "a step does not fit into ") {
		t.Errorf("a share of a few bytes: %v", err)
	}
}

// partsOf are those of a rank alone.
func partsOf(t *testing.T, o *options) loop.Parts {
	t.Helper()
	src, err := openData(o)
	if err != nil {
		t.Fatal(err)
	}
	parts := loop.Parts{Model: o.model.Model(), Log: slog.New(slog.DiscardHandler)}
	if parts.Backend, err = device.Open(device.Config{Device: "cpu", Precision: device.F32, Threads: 1}); err != nil {
		t.Fatal(err)
	}
	closing(t, parts.Backend)
	if parts.Loader, err = loader.New(src, o.loaderConfig(0, 1, parts.Log)); err != nil {
		t.Fatal(err)
	}
	closing(t, parts.Loader)
	return parts
}

func closing(t *testing.T, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Pictures are in the range that the model takes.
func TestRangeOfPictures(t *testing.T) {
	for args, least := range map[string]float32{
		"--algo bidvl --net conv32 --data synth:train=32":   -1,
		"--preset sm-frey --data synth:size=28x20,train=32": 0,
	} {
		b, err := partsOf(t, model(t, args+" --batch 32")).Loader.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if low, high := slices.Min(b.X), slices.Max(b.X); low < least || low > least+0.1 || high < 0.9 || high > 1 {
			t.Errorf("%s: pictures from %v to %v, want about %v to 1", args, low, high, least)
		}
	}
}
