package loader

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

// sorted is a data set whose samples are sorted by class, as a folder's are, in
// blocks of five: pictures of 128×128 in blocks of 256 KiB.
type sorted struct {
	*fake
	classes int
}

func (s sorted) Schema() data.Schema {
	return data.Schema{C: 1, H: 1, W: 4, DType: safetensors.U8, Classes: make([]string, s.classes)}
}

func (s sorted) ReadBlock(i int, dst *data.Block) error {
	block := s.layout.BlockSamples // which divides every shard
	dst.Grow(s.Schema(), block)
	for j := range dst.Labels {
		dst.Labels[j] = int64((i*block+j)*s.classes) / s.Len()
	}
	return nil
}

// Batches of a set that is sorted by class have all classes, in epochs of many
// pools, in pools as small as memory allows for, and for every number of shards.
func TestSortedSetsAreMixed(t *testing.T) {
	const batch, classes = 64, 10
	shards := func(n, each int64) []int64 { return slices.Repeat([]int64{each}, int(n)) }
	for _, tt := range []struct {
		shards []int64
		memory int64
		least  float64 // of 9.99, the mean of draws from the whole set
	}{
		{shards(50, 1000), 0, 9.9},
		{shards(1, 50000), 0, 9.9},
		{shards(50, 1000), 256 * 2 * 5 * 12, 9.7}, // 256 blocks: 1,280 samples
	} {
		src := sorted{newFake(5, tt.shards...), classes}
		l, err := New(src, Config{Seed: 1, Batch: batch, Shuffle: true, ShuffleMemory: tt.memory})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // what it prefetches does not matter
		var sum, n float64
		for range l.Steps() {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			met := map[int64]bool{}
			for _, c := range b.Labels {
				met[c] = true
			}
			sum, n = sum+float64(len(met)), n+1
		}
		if mean := sum / n; mean < tt.least {
			t.Errorf("%d shards, order %s: %.2f of %d classes in a batch of %d, want %v", len(tt.shards), l.State().Order, mean, classes, batch, tt.least)
		}
	}
}

func TestPoolSizes(t *testing.T) {
	for _, tt := range []struct {
		block  int
		memory int64
		want   string
	}{
		{1, 0, "pool16384-v2"},
		{5, 0, "pool3277-v2"}, // 16,385 samples
		{64, 0, "pool256-v2"},
		{1000, 0, "pool256-v2"},
		{5, 2 * 5 * 12 * 7, "pool7-v2"}, // samples of 4 bytes and a label
		{5, 2*5*12*7 - 1, "pool6-v2"},
	} {
		l, err := New(newFake(tt.block, 3000), Config{Batch: 1, Shuffle: true, ShuffleMemory: tt.memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := l.State().Order; got != tt.want {
			t.Errorf("blocks of %d, %d bytes: %s, want %s", tt.block, tt.memory, got, tt.want)
		}
	}
	_, err := New(newFake(5, 3000), Config{Batch: 1, Shuffle: true, ShuffleMemory: 100})
	if err == nil || !strings.Contains(err.Error(), "give at least 120") {
		t.Errorf("error %v, want one that says how much is needed", err)
	}
}

// A run that was begun with the first order goes on with it, whatever the
// loader would begin with.
func TestOldOrderGoesOn(t *testing.T) {
	src := newFake(3, 1001, 500, 799)
	old, err := New(src, base())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }() // what it prefetches does not matter
	begin := State{Digest: src.Digest(), Order: "window256-v1", Seed: 5}
	if err := old.Restore(begin); err != nil {
		t.Fatal(err)
	}
	o := newOrder(src.layout, src.layout.Spans(), 5, 0, legacy)
	for pos := int64(0); pos < 480; {
		b, err := old.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range b.Indices {
			if p := o.at(pos); got != o.spans[p.block].First+int64(p.in) {
				t.Fatalf("position %d is sample %d", pos, got)
			}
			pos++
		}
	}
	s := old.State()
	c := base()
	c.ShuffleMemory = 1 << 20
	if got, want := global(t, src, c, &s, 5, nil), global(t, src, base(), &s, 5, nil); s.Order != begin.Order || !reflect.DeepEqual(got, want) {
		t.Errorf("order %s, the same stream: %v", s.Order, reflect.DeepEqual(got, want))
	}
}

// With Carry each sample of a damaged block is replaced, in the same way on
// every world and after a resume anywhere.
func TestDamageIsReplaced(t *testing.T) {
	damaged := func() *fake {
		src := source()
		src.bad[2], src.bad[5] = true, true // samples 16 to 23 and 40 to 47
		return src
	}
	c := base()
	c.Quarantine = func(*data.CorruptError) {}
	whole := global(t, source(), base(), nil, 14, nil)
	var want []item
	for _, world := range []int{1, 2, 4} {
		for _, prefetch := range []int{0, 2} {
			c.World, c.Prefetch = world, prefetch
			got := streams(t, damaged(), c, nil, 14)
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("world %d, prefetch %d: another stream", world, prefetch)
			}
		}
	}
	replaced := 0
	for i, it := range want {
		bad := func(n int64) bool { return n >= 16 && n < 24 || n >= 40 && n < 48 }
		switch {
		case it.Weight != 1 || bad(it.Index) || it.Label != it.Index%7:
			t.Fatalf("slot %d holds %+v", i, it)
		case !bad(whole[i].Index) && it != whole[i]:
			t.Fatalf("slot %d holds %+v, but %+v is not damaged", i, it, whole[i])
		case it != whole[i]:
			replaced++
		}
	}
	if replaced < 40 { // 16 of 101, in more than three epochs
		t.Errorf("%d slots were replaced", replaced)
	}
	c.World, c.Prefetch = 2, 1
	s := State{Digest: source().Digest(), Order: "pool2048-v2", Seed: 5, Position: 72}
	if got := streams(t, damaged(), c, &s, 11); !reflect.DeepEqual(got, want[72:]) {
		t.Error("a resumed run replaces other samples")
	}
}

// streams is what global is, for loaders whose states may differ in what damage
// they have met.
func streams(t *testing.T, src data.Source, c Config, from *State, steps int) []item {
	t.Helper()
	parts := make([][]item, c.World)
	for r := range parts {
		one := c
		one.Rank = r
		l, err := New(src, one)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // what it prefetches does not matter
		if from != nil {
			if err := l.Restore(*from); err != nil {
				t.Fatal(err)
			}
		}
		for range steps {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Labels {
				parts[r] = append(parts[r], item{b.Indices[i], b.Labels[i], b.Epoch, [4]float32(b.X[4*i : 4*i+4]), b.Weight[i]})
			}
		}
	}
	var all []item
	for k := range steps {
		n := c.Batch / c.World
		for _, p := range parts {
			all = append(all, p[k*n:(k+1)*n]...)
		}
	}
	return all
}

// What one rank has found another leaves out too, also in what it has made
// ahead.
func TestExclude(t *testing.T) {
	c := base()
	c.Prefetch = 2
	c.Quarantine = func(*data.CorruptError) {}
	l, err := New(source(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // what it prefetches does not matter
	if err := l.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Exclude([]int{0, 1, 2, 3, 4, 5})
	if got := fmt.Sprint(l.Damaged(), l.Blocks()); got != "[0 1 2 3 4 5] 14" {
		t.Errorf("damaged, blocks: %s", got)
	}
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if least := slices.Min(b.Indices); least < 48 {
		t.Errorf("sample %d of a block that was excluded", least)
	}
}

func TestDamageOfAll(t *testing.T) {
	src := source()
	for i := range 14 {
		src.bad[i] = true
	}
	c := base()
	c.Quarantine = func(*data.CorruptError) {}
	l, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = l.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "every block that has a sample for the place of number ") {
		t.Errorf("error %v", err)
	}
}

// The last pool of an epoch may be a single block. Where that is damaged, its slots
// take samples of other pools, the same on every world.
func TestAWholePoolOfDamage(t *testing.T) {
	damaged := func() *fake {
		src := source()
		src.bad[2] = true // samples 16 to 23
		return src
	}
	c := base()
	c.ShuffleMemory = 2 * 13 * 8 * 12 // pools of 13 of the 14 blocks
	c.Quarantine = func(*data.CorruptError) {}
	const steps = 101 // 24 epochs
	var want []item
	for c.World = range 5 {
		if c.World == 0 || c.World == 3 {
			continue
		}
		got := streams(t, damaged(), c, nil, steps)
		if want == nil {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("world %d: another stream", c.World)
		}
	}
	for i, it := range want {
		if it.Weight != 1 || it.Index >= 16 && it.Index < 24 || it.Label != it.Index%7 {
			t.Fatalf("slot %d holds %+v", i, it)
		}
	}
	// No sample takes the places of a whole block: those are of the same number of others.
	for epoch := range slices.Chunk(want, 101) {
		times := map[int64]int{}
		for _, it := range epoch {
			if times[it.Index]++; times[it.Index] > 5 {
				t.Fatalf("in epoch %d, sample %d comes %d times", it.Epoch, it.Index, times[it.Index])
			}
		}
	}
}

// Ready says what Next will say, leaves the batch in hand as it is, and does not
// move the state.
func TestReady(t *testing.T) {
	for _, prefetch := range []int{0, 1, 3} {
		c := Config{Batch: 8, Prefetch: prefetch}
		want := global(t, source(), c, nil, 5, nil)
		src := source()
		src.bad[5] = true
		l, err := New(src, c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // what it prefetches does not matter
		for step := range 5 {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before := l.State()
			err = l.Ready(t.Context())
			if _, damaged := errors.AsType[*data.CorruptError](err); damaged != (step == 4) {
				t.Fatalf("prefetch %d, ready after step %d: %v", prefetch, step, err)
			}
			if !reflect.DeepEqual(l.State(), before) {
				t.Error("Ready moved the state")
			}
			for i, index := range b.Indices {
				if index != want[8*step+i].Index || b.X[4*i] != want[8*step+i].X[0] {
					t.Fatalf("prefetch %d, step %d: the batch in hand has changed", prefetch, step)
				}
			}
		}
	}
}

// What a rank is told of leaves the batch in hand as it is.
func TestExcludeKeepsTheBatchInHand(t *testing.T) {
	for _, prefetch := range []int{0, 1, 3} {
		c := base()
		c.Prefetch, c.Quarantine = prefetch, func(*data.CorruptError) {}
		l, err := New(source(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // what it prefetches does not matter
		for block := range 5 {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			indices, x := slices.Clone(b.Indices), slices.Clone(b.X)
			if block%2 == 0 { // with a batch made ahead, and without
				if err := l.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			l.Exclude([]int{block})
			if err := l.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(b.Indices, indices) || !slices.Equal(b.X, x) {
				t.Fatalf("prefetch %d, block %d: the batch in hand has changed", prefetch, block)
			}
		}
	}
}

// With the least memory each pool is a block, and with less there is none.
func TestLeastShuffleMemory(t *testing.T) {
	c := base()
	c.ShuffleMemory = LeastShuffleMemory(source())
	if m, err := mixingOf(source(), c); err != nil || m.blocks != 1 {
		t.Errorf("with %d bytes: %v, %v", c.ShuffleMemory, m, err)
	}
	c.ShuffleMemory--
	if m, err := mixingOf(source(), c); err == nil {
		t.Errorf("with %d bytes: %v", c.ShuffleMemory, m)
	}
}

// What stands for a damaged sample is of its pool, which is in memory.
func TestDamageIsReplacedFromItsPool(t *testing.T) {
	c := base()
	c.World, c.ShuffleMemory = 1, 2*4*8*12 // pools of 4 of the 14 blocks
	c.Quarantine = func(*data.CorruptError) {}
	src := source()
	src.bad[2] = true // samples 16 to 23
	steps := 100 / c.Batch
	clean, got := streams(t, source(), c, nil, steps), streams(t, src, c, nil, steps)
	l, err := New(source(), c)
	if err != nil {
		t.Fatal(err)
	}
	replaced, o := 0, l.fill.order(0)
	for pos := range got {
		if was := clean[pos].Index; was < 16 || was >= 24 {
			continue
		}
		replaced++
		own := o.pool(int64(pos))
		first, end := o.starts[own], min(o.starts[own+1], int64(len(clean)))
		if !slices.ContainsFunc(clean[first:end], func(it item) bool { return it.Index == got[pos].Index }) {
			t.Errorf("number %d of pool %d became %d, which is of another pool", clean[pos].Index, own, got[pos].Index)
		}
	}
	if replaced == 0 || o.pool(int64(len(got)-1)) < 2 {
		t.Errorf("%d samples replaced, in %d pools: the test sees nothing", replaced, len(o.starts)-1)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
