package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
	"ebtrain/data/synth"
)

// fake is a source of 1×1×4 pictures whose bytes spell their index.
type fake struct {
	layout data.Layout
	bad    map[int]bool // blocks that are damaged
	reads  atomic.Int64
	delay  time.Duration
}

func newFake(block int, shards ...int64) *fake {
	return &fake{layout: data.Layout{BlockSamples: block, Shards: shards}, bad: map[int]bool{}}
}

func (f *fake) Schema() data.Schema {
	return data.Schema{C: 1, H: 1, W: 4, DType: safetensors.U8, Classes: make([]string, 7)}
}
func (f *fake) Layout() data.Layout { return f.layout }
func (f *fake) Digest() string      { return fmt.Sprint("fake ", f.layout) }
func (f *fake) Len() (n int64) {
	for _, s := range f.layout.Shards {
		n += s
	}
	return n
}

func (f *fake) ReadBlock(i int, dst *data.Block) error {
	f.reads.Add(1)
	time.Sleep(f.delay)
	s := f.layout.Spans()[i]
	if f.bad[i] {
		return &data.CorruptError{File: "fake", Frame: i, Offset: -1, First: s.First, N: int64(s.N), Err: errors.New("damaged")}
	}
	dst.Grow(f.Schema(), s.N)
	for j := range s.N {
		index := s.First + int64(j)
		copy(dst.Pixels[4*j:], []byte{byte(index), byte(index >> 8), 0, 255})
		dst.Labels[j] = index % 7
	}
	return nil
}

// item is everything a batch says of one sample.
type item struct {
	Index, Label, Epoch int64
	X                   [4]float32
	Weight              float32
}

// global runs all ranks of a world side by side for steps and joins their
// parts. states, if not nil, gets rank 0's state before each step.
func global(t *testing.T, src data.Source, c Config, from *State, steps int, states *[]State) []item {
	t.Helper()
	world := max(c.World, 1)
	ls := make([]*Loader, world)
	for r := range ls {
		c.Rank = r
		l, err := New(src, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if from != nil {
			if err := l.Restore(*from); err != nil {
				t.Fatal(err)
			}
		}
		ls[r] = l
	}
	var items []item
	for range steps {
		if states != nil {
			*states = append(*states, ls[0].State())
		}
		for r, l := range ls {
			if got := l.State(); !reflect.DeepEqual(got, ls[world-1].State()) && r == 0 {
				t.Fatalf("ranks disagree: %+v and %+v", got, ls[world-1].State())
			}
			b, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return items
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.First != r*c.Batch/world || len(b.Labels) != c.Batch/world {
				t.Fatalf("rank %d of %d has slots from %d, %d of them", r, world, b.First, len(b.Labels))
			}
			for i := range b.Labels {
				items = append(items, item{b.Indices[i], b.Labels[i], b.Epoch, [4]float32(b.X[4*i : 4*i+4]), b.Weight[i]})
			}
		}
	}
	return items
}

func base() Config { return Config{Seed: 5, Batch: 24, Shuffle: true, Flip: true} }

// 3 shards of blocks of 8; 101 samples do not fill batches of 24.
func source() *fake { return newFake(8, 40, 33, 28) }

func TestOrderDoesNotDependOnWorldOrPrefetch(t *testing.T) {
	want := global(t, source(), base(), nil, 20, nil)
	for _, world := range []int{1, 2, 3, 4, 8} {
		for _, prefetch := range []int{0, 1, 3} {
			c := base()
			c.World, c.Prefetch = world, prefetch
			if got := global(t, source(), c, nil, 20, nil); !reflect.DeepEqual(got, want) {
				t.Errorf("world %d, prefetch %d: another stream", world, prefetch)
			}
		}
	}
}

func TestEverySampleOncePerEpoch(t *testing.T) {
	const n, epochs = 101, 6
	for _, shuffle := range []bool{true, false} {
		c := base()
		c.Batch, c.Shuffle = 6, shuffle // 101 batches are 6 epochs
		items := global(t, source(), c, nil, n, nil)
		var orders []string
		for e := range epochs {
			var indices []int64
			for _, it := range items[e*n : (e+1)*n] {
				indices = append(indices, it.Index)
				if it.Label != it.Index%7 || it.Weight != 1 {
					t.Fatalf("sample %+v has the wrong label or weight", it)
				}
			}
			orders = append(orders, fmt.Sprint(indices))
			slices.Sort(indices)
			for i, v := range indices {
				if v != int64(i) {
					t.Fatalf("epoch %d does not have each sample once: %v", e, indices)
				}
			}
		}
		if same := orders[0] == orders[1]; same == shuffle {
			t.Errorf("shuffle %v: epochs 0 and 1 in the same order: %v", shuffle, same)
		}
	}
}

// The windows of a data set of many blocks: still a permutation, and mixed.
func TestManyWindows(t *testing.T) {
	src := newFake(3, 1001, 500, 799) // 768 blocks, more than two windows
	n := int(src.Len())
	o := newOrder(src.layout, src.layout.Spans(), 1, 0, true)
	if len(o.starts) != 4 {
		t.Fatalf("%d windows, want 3", len(o.starts)-1)
	}
	seen := make([]bool, n)
	neighbours := 0
	var last int64
	for pos := range n {
		p := o.at(int64(pos))
		i := o.spans[p.block].First + int64(p.in)
		if seen[i] {
			t.Fatalf("sample %d comes twice", i)
		}
		seen[i] = true
		if i == last+1 {
			neighbours++
		}
		last = i
	}
	if neighbours > 20 { // 2300 pairs, each with chance about 1/700
		t.Errorf("%d samples follow their neighbour, want about 3", neighbours)
	}
}

// The order is part of every checkpoint: a change needs a new name.
func TestOrderIsFrozen(t *testing.T) {
	o := newOrder(source().layout, source().layout.Spans(), 5, 2, true)
	var got []int64
	for pos := range int64(10) {
		p := o.at(pos)
		got = append(got, o.spans[p.block].First+int64(p.in))
	}
	if want := []int64{12, 15, 33, 75, 83, 57, 32, 73, 93, 94}; !slices.Equal(got, want) {
		t.Errorf("order %s begins %v, want %v", shuffledOrder, got, want)
	}
}

func TestResumeAnywhere(t *testing.T) {
	const steps = 14 // more than three epochs
	var states []State
	c := base()
	c.Prefetch = 2
	want := global(t, source(), c, nil, steps, &states)
	for at, s := range states {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back State
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		c.World = []int{1, 2, 3, 4, 6, 8}[at%6]
		if got := global(t, source(), c, &back, steps-at, nil); !reflect.DeepEqual(got, want[at*c.Batch:]) {
			t.Errorf("resuming at step %d with world %d gives another stream", at, c.World)
		}
	}
}

// A loader that was resumed can be saved and resumed again, also with another
// batch.
func TestResumeTwice(t *testing.T) {
	var states, later []State
	want := global(t, source(), base(), nil, 12, &states)
	c := base()
	c.Batch, c.World = 8, 2
	first := global(t, source(), c, &states[3], 7, &later)
	second := global(t, source(), c, &later[5], 2, nil)
	got := append(first[:5*8], second...)
	for i := range got {
		got[i].Epoch, want[3*24+i].Epoch = 0, 0 // of the batch, whose size differs
		if got[i] != want[3*24+i] {
			t.Fatalf("sample %d after resuming twice is %+v, want %+v", i, got[i], want[3*24+i])
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	l, err := New(source(), base())
	if err != nil {
		t.Fatal(err)
	}
	good := l.State()
	tests := []struct {
		name string
		edit func(s *State)
		want string
	}{
		{"another data set", func(s *State) { s.Digest = "x" }, "the data set x"},
		{"another order", func(s *State) { s.Order = sequentialOrder }, "order"},
		{"another seed", func(s *State) { s.Seed++ }, "seed is 6"},
		{"position", func(s *State) { s.Position = 101 }, "position from 0 to 100"},
		{"epoch", func(s *State) { s.Epoch = -1 }, "epoch -1"},
		{"quarantine", func(s *State) { s.Quarantine = []int{99} }, "quarantined block 99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := good
			tt.edit(&s)
			if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if got := l.State(); !reflect.DeepEqual(got, good) {
				t.Errorf("a refused state moved the loader to %+v", got)
			}
		})
	}
}

func TestTails(t *testing.T) {
	tests := []struct {
		tail         Tail
		items, empty int
		steps        int64
	}{
		{Mask, 240, 38, 5},
		{Drop, 192, 0, 4},
	}
	for _, tt := range tests {
		for _, world := range []int{1, 2, 4} {
			c := base()
			c.Tail, c.Passes, c.World, c.Prefetch = tt.tail, 2, world, 2
			items := global(t, source(), c, nil, 99, nil)
			empty := 0
			seen := map[[2]int64]bool{}
			for _, it := range items {
				if it.Weight == 0 {
					empty++
					if it.Index != -1 || it.Label != -1 || it.X != [4]float32{} {
						t.Fatalf("an empty slot holds %+v", it)
					}
					continue
				}
				if key := [2]int64{it.Epoch, it.Index}; seen[key] {
					t.Fatalf("sample %d comes twice in epoch %d", it.Index, it.Epoch)
				} else {
					seen[key] = true
				}
			}
			if len(items) != tt.items || empty != tt.empty {
				t.Errorf("tail %d, world %d: %d slots, %d of them empty, want %d and %d", tt.tail, world, len(items), empty, tt.items, tt.empty)
			}
			l, err := New(source(), c)
			if err != nil || l.Steps() != tt.steps {
				t.Errorf("steps %d, %v, want %d", l.Steps(), err, tt.steps)
			}
		}
	}
}

func TestValuesAndFlip(t *testing.T) {
	c := Config{Batch: 101, Tail: Mask, Flip: true, Seed: 3}
	plain := global(t, source(), Config{Batch: 101, Tail: Mask}, nil, 1, nil)
	mirrored := 0
	for i, it := range global(t, source(), c, nil, 1, nil) {
		p := plain[i].X
		if p != [4]float32{float32(i)/127.5 - 1, -1, -1, 1} {
			t.Fatalf("sample %d is %v", i, p)
		}
		switch it.X {
		case p:
		case [4]float32{p[3], p[2], p[1], p[0]}:
			mirrored++
		default:
			t.Fatalf("sample %d is %v, want %v or its mirror image", i, it.X, p)
		}
	}
	if mirrored < 30 || mirrored > 70 { // 50 ± 4 standard errors of 5
		t.Errorf("%d of 101 are mirrored", mirrored)
	}
	unit := global(t, source(), Config{Batch: 1, Range: Unit}, nil, 2, nil)[1]
	if unit.X != [4]float32{1.0 / 255, 0, 0, 1} {
		t.Errorf("in [0, 1]: %v", unit.X)
	}
}

// floats is a source whose pictures are F32.
type floats struct{ *fake }

func (f floats) Schema() data.Schema {
	return data.Schema{C: 1, H: 1, W: 1, DType: safetensors.F32, Classes: make([]string, 7)}
}

func TestFloat32PicturesAreAsStored(t *testing.T) {
	l, err := New(floats{newFake(4, 4)}, Config{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Next(t.Context())
	if err != nil || b.X[0] != math.Float32frombits(0xff000000) {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestDamageFailsOrIsQuarantined(t *testing.T) {
	src := source()
	src.bad[2] = true // samples 16 to 23
	l, err := New(src, Config{Batch: 8, Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	for range 2 {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := l.State()
	for range 2 { // the error stays
		_, err = l.Next(t.Context())
		if _, ok := errors.AsType[*data.CorruptError](err); !ok || !strings.Contains(err.Error(), "samples 16 to 23") {
			t.Fatalf("error %v, want the damaged samples named", err)
		}
	}
	if got := l.State(); !reflect.DeepEqual(got, before) {
		t.Errorf("the failed batch moved the state from %+v to %+v", before, got)
	}

	var named atomic.Int64
	c := Config{Batch: 8, World: 2, Prefetch: 1, Tail: Mask, Passes: 1}
	c.Quarantine = func(*data.CorruptError) { named.Add(1) }
	items := global(t, src, c, nil, 2, nil) // before the block: nothing yet
	var states []State
	c.World = 1
	items = append(items, global(t, src, c, &before, 99, &states)...)
	lost := 0
	for _, it := range items {
		if it.Weight == 0 && it.Index >= 0 {
			lost++
			if it.Index < 16 || it.Index > 23 {
				t.Errorf("sample %d is lost", it.Index)
			}
		}
	}
	if got := states[len(states)-1].Quarantine; lost != 8 || !slices.Equal(got, []int{2}) {
		t.Errorf("%d samples have weight 0, quarantine %v; want 8 and [2]", lost, got)
	}
	if len(items) != 104 {
		t.Errorf("%d slots, want 104: the number of steps must not change", len(items))
	}
	s := states[len(states)-1]
	s.Epoch, s.Position = 0, 16
	if items := global(t, source(), c, &s, 1, nil); items[0].Weight != 0 { // once in quarantine, out for good
		t.Error("a restored quarantine is forgotten")
	}
}

func TestCanceledNextMissesNothing(t *testing.T) {
	src := source()
	src.delay = 20 * time.Millisecond
	c := base()
	c.Prefetch = 1
	want := global(t, source(), c, nil, 6, nil)
	l, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	var got []int64
	for len(got) < len(want) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		b, err := l.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Indices...)
	}
	for i, v := range got {
		if v != want[i].Index {
			t.Fatalf("sample %d is %d, want %d", i, v, want[i].Index)
		}
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 20 {
		c := base()
		c.Prefetch = 4
		l, err := New(source(), c)
		if err != nil {
			t.Fatal(err)
		}
		for range i % 5 {
			if _, err := l.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("next after close: %v", err)
		}
	}
	// Close has waited for the goroutines' functions; the runtime may need a
	// moment more to forget them.
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// A data set of one window is decoded once, not once an epoch.
func TestSmallSetsStayDecoded(t *testing.T) {
	src := source()
	global(t, src, base(), nil, 40, nil)
	if got, blocks := src.reads.Load(), int64(len(src.layout.Spans())); got > blocks {
		t.Errorf("%d reads of %d blocks", got, blocks)
	}
}

func TestBadConfigs(t *testing.T) {
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"no batch", Config{}, "batch of 0"},
		{"indivisible", Config{Batch: 10, World: 4}, "multiple of 4"},
		{"rank", Config{Batch: 4, World: 2, Rank: 2}, "rank 2, expected 0 to 1"},
		{"world", Config{Batch: 4, World: -1}, "world of -1"},
		{"endless passes", Config{Batch: 4, Passes: 1}, "carried tail"},
		{"prefetch", Config{Batch: 4, Prefetch: -1}, "prefetch"},
		{"always dropped", Config{Batch: 102, Tail: Drop}, "always be dropped"},
		{"tail", Config{Batch: 4, Tail: 9}, "unknown tail"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(source(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Pictures copied into shards come out of a loader as they went in, and a
// flipped byte on disk is an error that names the file.
func TestWithShards(t *testing.T) {
	src, err := synth.Open(synth.Config{Size: 8, Train: 150}, "train")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "set")
	w, err := shard.Create(dir, shard.Options{Schema: src.Schema(), BlockSamples: 10, ShardSamples: 40})
	if err != nil {
		t.Fatal(err)
	}
	var b data.Block
	for i, span := range src.Layout().Spans() {
		if err := src.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		for j := range span.N {
			if err := w.Add(t.Context(), "train", b.Pixels[j*192:(j+1)*192], b.Labels[j]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := shard.Open(dir, "train")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Batch: 50, Tail: Mask, Passes: 1, Prefetch: 2}
	one, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }() // what it prefetches does not matter
	two, err := New(r, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }() // what it prefetches does not matter
	for range 3 {
		x, err := one.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		y, err := two.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(x, y) {
			t.Fatal("pictures changed on their way through shards")
		}
	}
	path := filepath.Join(dir, "train", "shard-00001.safetensors.zst")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := two.Restore(State{Digest: r.Digest(), Order: sequentialOrder}); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = two.Next(t.Context())
	}
	if !strings.Contains(err.Error(), path+": frame ") {
		t.Errorf("error %v, want one naming %s and the frame", err, path)
	}
}

func BenchmarkNext(b *testing.B) {
	src, err := synth.Open(synth.Config{}, "train")
	if err != nil {
		b.Fatal(err)
	}
	l, err := New(src, Config{Batch: 64, Shuffle: true, Flip: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	for range 200 {                  // decode the window
		if _, err := l.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(64 * 3072)
	for b.Loop() {
		if _, err := l.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
