package loop_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/loop"
)

// damaged is data in blocks of four samples, some of which cannot be read.
type damaged struct {
	data.Source
	bad []int
}

const damagedBlock = 4

func (d damaged) Layout() data.Layout {
	return data.Layout{BlockSamples: damagedBlock, Shards: []int64{d.Len()}}
}

func (d damaged) ReadBlock(i int, dst *data.Block) error {
	s := d.Layout().Spans()[i]
	if slices.Contains(d.bad, i) {
		return &data.CorruptError{File: "shard-7", Offset: -1, Frame: i, First: s.First, N: int64(s.N), Err: errors.New("checksum differs")}
	}
	var whole data.Block
	if err := d.Source.ReadBlock(0, &whole); err != nil {
		return err
	}
	n := d.Schema().SampleBytes()
	dst.Values = append(dst.Values[:0], whole.Values[int(s.First)*n:(int(s.First)+s.N)*n]...)
	dst.Labels = append(dst.Labels[:0], whole.Labels[s.First:int(s.First)+s.N]...)
	return nil
}

// inOrder has samples come by index, so that block b is the batch of step b.
func inOrder(c *loader.Config) { c.Shuffle, c.Prefetch = false, 1 }

// TestDamageStopsAfterACheckpoint: the steps before the damage are kept, all
// ranks say the same, and with the data mended the run goes on as if nothing
// had been.
func TestDamageStopsAfterACheckpoint(t *testing.T) {
	for _, world := range []int{1, 2} {
		bad := []int{3}
		j := job{world: world, config: loop.Config{Batch: damagedBlock, Steps: 6, Seed: 1, CkptDir: t.TempDir(), CkptEvery: 100}, load: inOrder}
		j.data = func(rank int, s data.Source) data.Source {
			if rank == world-1 { // the copy of one rank alone
				return damaged{s, bad}
			}
			return damaged{s, nil}
		}
		_, errs := j.run(t)
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), "shard-7: frame 3 (samples 12 to 15): checksum differs; copy or import the data set again, or leave out what is damaged with --on-bad-data skip; a checkpoint of the 3 steps done is in place: go on from it with --resume") || err.Error() != errs[0].Error() {
				t.Errorf("world %d, rank %d: %v", world, r, err)
			}
		}
		if _, itself := errors.AsType[*data.CorruptError](errs[world-1]); !itself { // not the text that the others are sent
			t.Errorf("world %d: the rank that met the damage ends with %v, want the damage itself", world, errs[world-1])
		}
		if path, _, _, err := ckpt.ReadLatest(j.config.CkptDir, slog.New(slog.DiscardHandler)); err != nil || filepath.Base(path) != ckpt.Name(3) || len(j.seen.records) != 3 {
			t.Errorf("world %d: newest checkpoint %q (%v) after %d steps, want that of step 3", world, path, err, len(j.seen.records))
		}
		first := j.seen.records
		j.config.Resume = true
		if _, errs := j.run(t); errs[0] == nil || strings.Contains(errs[0].Error(), "checkpoint") || !strings.Contains(errs[0].Error(), "step 3: ") {
			t.Errorf("world %d: resumed on damaged data: %v", world, errs)
		}
		bad = nil
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		got := append(first, j.seen.records...)
		j.config.Resume, j.config.CkptDir = false, t.TempDir()
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		for i, r := range j.seen.records {
			for k, v := range r.Values {
				if name := r.Names[k]; name != algo.ReportStop && got[i].Values[k] != v {
					t.Errorf("world %d, step %d: %s is %v, uninterrupted %v", world, i, name, got[i].Values[k], v)
				}
			}
		}
	}
}

// closed is data of which a block may not be read.
type closed struct{ data.Source }

func (closed) ReadBlock(int, *data.Block) error {
	return &fs.PathError{Op: "open", Path: "shard-7", Err: fs.ErrPermission}
}

// TestAdviceOnDamage: only what is damaged can be left out, and only by a run that does not
// leave it out already. All ranks say the same.
func TestAdviceOnDamage(t *testing.T) {
	skip := func(c *loader.Config) { inOrder(c); c.Quarantine = func(*data.CorruptError) {} }
	all := func(s data.Source) (blocks []int) {
		for i := range (damaged{Source: s}).Layout().Spans() {
			blocks = append(blocks, i)
		}
		return blocks
	}
	for name, tt := range map[string]struct {
		source func(data.Source) data.Source
		load   func(*loader.Config)
		advice bool
	}{
		"damaged":      {func(s data.Source) data.Source { return damaged{s, all(s)} }, inOrder, true},
		"all left out": {func(s data.Source) data.Source { return damaged{s, all(s)} }, skip, false},
		"closed":       {func(s data.Source) data.Source { return closed{s} }, inOrder, false},
	} {
		j := job{world: 2, config: loop.Config{Batch: damagedBlock, Steps: 6, Seed: 1, CkptDir: t.TempDir()}, load: tt.load}
		j.data = func(_ int, s data.Source) data.Source { return tt.source(s) }
		_, errs := j.run(t)
		for _, err := range errs {
			if err == nil || strings.Contains(err.Error(), ", or leave out what is damaged with --on-bad-data skip") != tt.advice {
				t.Errorf("%s: %v, want advice: %v", name, err, tt.advice)
			}
		}
	}
}

// TestDamageAfterTheEnd is damage of what a run does not need, nor one that is done and
// resumed.
func TestDamageAfterTheEnd(t *testing.T) {
	j := job{world: 1, config: loop.Config{Batch: damagedBlock, Steps: 3, Seed: 1, CkptDir: t.TempDir()}, load: inOrder,
		data: func(_ int, s data.Source) data.Source { return damaged{s, []int{3}} }}
	for range 2 {
		if outcomes, errs := j.run(t); outcomes[0] != loop.Finished || errs[0] != nil {
			t.Errorf("resumed: %v, outcome %v, error %v, want it finished", j.config.Resume, outcomes[0], errs[0])
		}
		j.config.Resume = true
	}
}

// TestDamageIsLeftOut trains past damage: one rank and two see the same samples,
// and the checkpoint lists what any rank has met.
func TestDamageIsLeftOut(t *testing.T) {
	var want []loop.Record
	for _, world := range []int{1, 2} {
		j := job{world: world, config: loop.Config{Batch: damagedBlock, Steps: 8, Seed: 1, CkptDir: t.TempDir()},
			load: func(c *loader.Config) { c.Prefetch, c.Quarantine = 1, func(*data.CorruptError) {} },
			data: func(_ int, s data.Source) data.Source { return damaged{s, []int{1, 3, 8}} }}
		if _, errs := j.run(t); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		if world == 1 {
			want = j.seen.records
		}
		const first = 0 // later steps drift apart, as sums are taken in another order
		for i, v := range want[first].Values {
			if got := j.seen.records[first].Values[i]; got-v > 1e-4*(1+max(v, -v)) || v-got > 1e-4*(1+max(v, -v)) {
				t.Errorf("world %d: %s is %v, on one rank %v", world, want[first].Names[i], got, v)
			}
		}
		if got := listed(t, j); !slices.Equal(got, []int{1, 3, 8}) {
			t.Errorf("world %d: the checkpoint lists %v", world, got)
		}
	}
}

// listed are the damaged blocks that the newest checkpoint of a job lists.
func listed(t *testing.T, j job) []int {
	t.Helper()
	_, s, _, err := ckpt.ReadLatest(j.config.CkptDir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var pos loader.State
	if err := json.Unmarshal(s.Loader, &pos); err != nil {
		t.Fatal(err)
	}
	return pos.Quarantine
}

// TestDamageOfOneRankIsListed: rank 0 writes the checkpoint, and has a whole copy.
func TestDamageOfOneRankIsListed(t *testing.T) {
	j := job{world: 2, config: loop.Config{Batch: damagedBlock, Steps: 3, Seed: 1, CkptDir: t.TempDir()},
		load: func(c *loader.Config) { inOrder(c); c.Quarantine = func(*data.CorruptError) {} },
		data: func(rank int, s data.Source) data.Source { return damaged{s, []int{1, 2}[:2*rank]} }}
	if _, errs := j.run(t); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	if got := listed(t, j); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("the checkpoint lists %v, want the blocks 1 and 2 that rank 1 has left out", got)
	}
}
