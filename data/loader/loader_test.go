package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/data"
	"ebtrain/data/safetensors"
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

func (f *fake) Digest() string { return fmt.Sprint("fake ", f.layout) }

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
		copy(dst.Values[4*j:], []byte{byte(index), byte(index >> 8), 0, 255})
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

// common is a state without what a rank alone has met, which depends on how far ahead
// it reads.
func common(l *Loader) State {
	s := l.State()
	s.Quarantine = nil
	return s
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
			if one, other := common(l), common(ls[world-1]); r == 0 && !reflect.DeepEqual(one, other) {
				t.Fatalf("ranks disagree: %+v and %+v", one, other)
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

// The pools of a data set of many blocks: still a permutation, and mixed.
func TestManyPools(t *testing.T) {
	for _, m := range []mixing{legacy, {acrossShards, 256}} {
		t.Run(m.String(), func(t *testing.T) { manyPools(t, m) })
	}
}

func manyPools(t *testing.T, m mixing) {
	src := newFake(3, 1001, 500, 799) // 768 blocks, more than two pools
	n := int(src.Len())
	o := newOrder(src.layout, src.layout.Spans(), 1, 0, m)
	if len(o.starts) != 4 {
		t.Fatalf("%d pools, want 3", len(o.starts)-1)
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
	for _, tt := range []struct {
		m    mixing
		name string
		want []int64
		last []int64
	}{
		{legacy, "window256-v1", []int64{12, 15, 33, 75, 83, 57, 32, 73, 93, 94}, []int64{38, 28, 81, 24}},
		{mixing{acrossShards, 2048}, "pool2048-v2", []int64{73, 76, 78, 14, 70, 25, 77, 12, 8, 9}, []int64{17, 7, 68, 3}},
		{mixing{acrossShards, 2}, "pool2-v2", []int64{43, 42, 40, 14, 15, 13, 45, 12, 8, 9}, []int64{26, 25, 56, 28}},
		{inOrder, "sequential-v1", []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int64{97, 98, 99, 100}},
	} {
		o := newOrder(source().layout, source().layout.Spans(), 5, 2, tt.m)
		var got []int64
		for pos := range int64(10) {
			p := o.at(pos)
			got = append(got, o.spans[p.block].First+int64(p.in))
		}
		if !slices.Equal(got, tt.want) || tt.m.String() != tt.name {
			t.Errorf("order %s begins %v, want %s, %v", tt.m, got, tt.name, tt.want)
		}
		got = got[:0]
		for pos := range int64(4) { // of the last pool
			p := o.at(97 + pos)
			got = append(got, o.spans[p.block].First+int64(p.in))
		}
		if !slices.Equal(got, tt.last) {
			t.Errorf("order %s ends %v, want %v", tt.m, got, tt.last)
		}
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
		{"another order", func(s *State) { s.Order = inOrder.String() }, "order"},
		{"an order of the future", func(s *State) { s.Order = "pool64-v3" }, "order"},
		{"another seed", func(s *State) { s.Seed++ }, "seed is 6"},
		{"position", func(s *State) { s.Position = 101 }, "position from 0 to 100"},
		{"epoch", func(s *State) { s.Epoch = -1 }, "epoch -1"},
		{"an epoch that no draw can be named by", func(s *State) { s.Epoch = 1 << 32 }, "epoch 4294967296"},
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
		{"range", Config{Batch: 4, Range: 9}, "unknown range 9"},
		{"passes", Config{Batch: 4, Passes: -1}, "-1 passes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := New(source(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	for _, tail := range []Tail{Carry, Mask} { // which fill it, or leave places empty
		if _, err := New(source(), Config{Batch: 102, Tail: tail}); err != nil {
			t.Errorf("a batch of more samples than there are, tail %d: %v", tail, err)
		}
	}
}
