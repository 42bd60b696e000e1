package loader

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/safetensors"
)

// prose is a source of sentences: number i has length(i) tokens, and its words
// spell i.
type prose struct{ *fake }

// length is ragged; few sentences are long.
func length(i int64) int {
	switch {
	case i%13 == 5:
		return 9 + int(i%2)
	case i%3 == 0:
		return 5
	}
	return 3 + int(i%2)
}

func (p prose) Schema() data.Schema {
	words := data.ReservedWords()
	for i := range 300 {
		words = append(words, fmt.Sprint(i))
	}
	return data.Schema{C: 1, H: 1, W: 10, DType: safetensors.I32, Text: &data.Text{Words: words, Edges: []int{4, 6, 10}}}
}

func (p prose) ReadBlock(i int, dst *data.Block) error {
	s := p.layout.Spans()[i]
	if err := p.fake.ReadBlock(i, dst); err != nil {
		return err
	}
	dst.Values, dst.Ends = dst.Values[:0], dst.Ends[:0]
	for j := range int64(s.N) {
		for _, t := range spelled(s.First + j) {
			dst.Values = binary.LittleEndian.AppendUint32(dst.Values, uint32(t))
		}
		dst.Ends = append(dst.Ends, int64(len(dst.Values)/4))
		dst.Labels[j] = -1
	}
	return nil
}

func spelled(i int64) []int32 {
	s := []int32{data.Begin}
	for len(s) < length(i)-1 {
		s = append(s, int32(data.Reserved+i))
	}
	return append(s, data.End)
}

func sentences() prose { return prose{source()} }

// said is a batch of all ranks.
type said struct {
	Length  int
	Indices []int64
	Weights []float32
	Tokens  []int32
}

// spoken runs all ranks of a world side by side for steps and joins their parts.
func spoken(t *testing.T, src data.Source, c Config, from *State, steps int, states *[]State) (all []said) {
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
	for range steps {
		if states != nil {
			*states = append(*states, ls[0].State())
		}
		var one said
		for r, l := range ls {
			b, err := l.Next(t.Context())
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			if r > 0 && b.Length != one.Length {
				t.Fatalf("rank %d has sentences of %d, rank 0 of %d", r, b.Length, one.Length)
			}
			one.Length = b.Length
			one.Indices = append(one.Indices, b.Indices...)
			one.Weights = append(one.Weights, b.Weight...)
			one.Tokens = append(one.Tokens, b.Tokens...)
			checkPadding(t, b)
		}
		all = append(all, one)
	}
	return all
}

// checkPadding: each slot has its sentence and nothing else.
func checkPadding(t *testing.T, b *Batch) {
	t.Helper()
	if len(b.X) > 0 || len(b.Tokens) != len(b.Indices)*b.Length {
		t.Fatalf("%d values, %d tokens for %d sentences of %d", len(b.X), len(b.Tokens), len(b.Indices), b.Length)
	}
	for i, index := range b.Indices {
		row := b.Tokens[i*b.Length : (i+1)*b.Length]
		var want []int32
		if index >= 0 && b.Weight[i] > 0 {
			want = spelled(index)
		}
		if int(b.Lengths[i]) != len(want) || !slices.Equal(row[:len(want)], want) || slices.ContainsFunc(row[len(want):], func(t int32) bool { return t != data.Padding }) {
			t.Fatalf("slot %d of sentence %d holds %v, length %d", i, index, row, b.Lengths[i])
		}
	}
}

func textBase() Config { return Config{Seed: 5, Batch: 24, Shuffle: true} }

func TestSentencesDoNotDependOnWorldOrPrefetch(t *testing.T) {
	for _, tail := range []Tail{Carry, Mask, Drop} {
		c := textBase()
		c.Tail, c.Batch = tail, 8*3
		want := spoken(t, sentences(), c, nil, 20, nil)
		seen := map[int]bool{}
		for _, b := range want {
			seen[b.Length] = true
		}
		if tail != Drop && len(seen) != 3 {
			t.Errorf("tail %d: batches of lengths %v, want three", tail, seen)
		}
		for _, world := range []int{1, 2, 3, 4, 8} {
			for _, prefetch := range []int{0, 1, 3} {
				c.World, c.Prefetch = world, prefetch
				if got := spoken(t, sentences(), c, nil, 20, nil); !reflect.DeepEqual(got, want) {
					t.Errorf("tail %d, world %d, prefetch %d: another stream", tail, world, prefetch)
				}
			}
		}
	}
}

// counted adds what batches have of each sentence.
func counted(counts map[int64]int, all []said) map[int64]int {
	for _, b := range all {
		for i, index := range b.Indices {
			if b.Weights[i] > 0 {
				counts[index]++
			}
		}
	}
	return counts
}

// In a masked pass each sentence is once, in its own bucket.
func TestSentencesOncePerPass(t *testing.T) {
	c := textBase()
	c.Tail, c.Passes, c.World = Mask, 3, 2
	all := spoken(t, sentences(), c, nil, 99, nil)
	l, err := New(sentences(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3*int(l.Steps()) {
		t.Errorf("%d batches in three passes of %d", len(all), l.Steps())
	}
	counts := counted(map[int64]int{}, all)
	for i := range int64(101) {
		if counts[i] != 3 {
			t.Errorf("sentence %d comes %d times in three passes", i, counts[i])
		}
	}
	for _, b := range all {
		for _, index := range b.Indices {
			if edges := map[int]int{4: 3, 6: 5, 10: 7}; index >= 0 && (length(index) > b.Length || length(index) < edges[b.Length]) {
				t.Errorf("sentence %d of %d tokens in a batch of %d", index, length(index), b.Length)
			}
		}
	}
	var n int64
	for _, b := range l.Buckets() {
		n += b.N
	}
	if n != 101 || len(l.Buckets()) != 3 {
		t.Errorf("buckets %v", l.Buckets())
	}
	c.Tail, c.Passes = Carry, 0
	if l, err = New(sentences(), c); err != nil || l.Steps() != 5 {
		t.Errorf("%d batches of 24 of 101 sentences, where tails are carried, want 5 (%v)", l.Steps(), err)
	}
}

// What is kept once is not kept for ever.
func TestBlocksAreForgotten(t *testing.T) {
	b := newBlocks(source(), 3)
	for i := range 3 {
		b.decoded[i], b.held = &data.Block{}, append(b.held, i)
	}
	for _, list := range [][]int{{0, 1}, {1}, {}} {
		b.keep(list)
		for i, block := range b.decoded {
			if (block != nil) != slices.Contains(list, i) {
				t.Errorf("to keep are %v, kept is block %d: %v", list, i, block != nil)
			}
		}
	}
	if len(b.spare) != 3 {
		t.Errorf("%d of three blocks can be used again", len(b.spare))
	}
}

// In each pass of whole batches no sentence is twice, and what one pass leaves out does not
// come in the next one's place.
func TestDroppedSentences(t *testing.T) {
	c := textBase()
	c.Tail, c.Passes, c.Batch = Drop, 3, 8
	l, err := New(sentences(), c)
	if err != nil {
		t.Fatal(err)
	}
	all, steps := spoken(t, sentences(), c, nil, 99, nil), int(l.Steps())
	if len(all) != 3*steps || steps*c.Batch == 101 {
		t.Fatalf("%d batches in three passes of %d", len(all), steps)
	}
	for pass := range slices.Chunk(all, steps) {
		counts := counted(map[int64]int{}, pass)
		if len(counts) != steps*c.Batch {
			t.Errorf("%d different sentences in %d batches of %d", len(counts), steps, c.Batch)
		}
	}
}

// A carried stream gives every sentence as often as any other, but for those that
// wait: none is lost, none comes twice in an epoch.
func TestCarriedSentencesAreNotLost(t *testing.T) {
	c := textBase()
	c.Batch = 8
	var states []State
	all := spoken(t, sentences(), c, nil, 80, &states)
	counts := counted(map[int64]int{}, all[:79])
	s := states[79]
	total, waiting := 0, 0
	for _, n := range counts {
		total += n
	}
	for _, n := range s.Waiting {
		waiting += n
	}
	if given := int(s.Epoch)*101 + int(s.Position) - waiting; total != given || total != 79*8 {
		t.Errorf("%d sentences given out, the state says %d", total, given)
	}
	for i := range int64(101) {
		if n := counts[i]; n < int(s.Epoch)-1 || n > int(s.Epoch)+1 {
			t.Errorf("sentence %d came %d times in %d epochs", i, n, s.Epoch)
		}
	}
}

func TestSentencesResumeAnywhere(t *testing.T) {
	type from struct {
		tail  Tail
		batch int
		seed  uint64
	}
	for _, f := range []from{{Carry, 24, 5}, {Mask, 24, 5}, {Drop, 24, 5}, {Drop, 8, 1}} { // the last one's fourth epoch ends with a full batch, while others wait
		const steps = 46
		var states []State
		c := textBase()
		c.Batch, c.Tail, c.Seed, c.Prefetch = f.batch, f.tail, f.seed, 2
		want := spoken(t, sentences(), c, nil, steps, &states)
		for at, s := range states {
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back State
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			c.World = []int{1, 2, 4, 8, 3, 6}[at%6]
			if c.Batch%c.World != 0 {
				c.World = 8
			}
			if got := spoken(t, sentences(), c, &back, steps-at, nil); !reflect.DeepEqual(got, want[at:]) {
				t.Fatalf("tail %d: resuming at step %d with world %d gives another stream, of state %s", f.tail, at, c.World, text)
			}
		}
	}
}

// What waits at a place is a function of the place: a state that another batch has
// led to goes on without losing or repeating a sentence.
func TestSentencesResumeWithAnotherBatch(t *testing.T) {
	var states, end []State
	c := textBase()
	first := spoken(t, sentences(), c, nil, 11, &states)
	c.Batch = 6
	second := spoken(t, sentences(), c, &states[10], 61, &end)
	counts := counted(counted(map[int64]int{}, first[:10]), second[:60])
	s := end[60]
	total, waiting := 0, 0
	for _, n := range counts {
		total += n
	}
	for _, n := range s.Waiting {
		waiting += n
	}
	if want := int(s.Epoch)*101 + int(s.Position) - waiting; total != want {
		t.Errorf("%d sentences, the state says %d", total, want)
	}
	for i := range int64(101) {
		if n := counts[i]; n < int(s.Epoch)-1 || n > int(s.Epoch)+1 {
			t.Errorf("sentence %d came %d times in %d epochs", i, n, s.Epoch)
		}
	}
}

func TestSentencesRestoreRefuses(t *testing.T) {
	l, err := New(sentences(), textBase())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		waiting []int
		want    string
	}{
		{nil, "the state has 0 buckets, and the sentences have 3"},
		{[]int{0, -1, 0}, "-1 sentences wait"},
		{[]int{1, 0, 0}, "which is more than there are before it"},
	} {
		s := l.State()
		s.Waiting = tt.waiting
		if err := l.Restore(s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want %q", tt.waiting, err, tt.want)
		}
	}
}

// A damaged block is an error at once, or left out on every rank.
func TestDamagedSentences(t *testing.T) {
	damaged := func() prose {
		src := sentences()
		src.bad[3] = true
		return src
	}
	if _, err := New(damaged(), textBase()); err == nil || !strings.Contains(err.Error(), "fake: frame 3") {
		t.Errorf("damage: %v", err)
	}
	told := 0
	c := textBase()
	c.Batch, c.Quarantine = 8, func(*data.CorruptError) { told++ }
	counts := counted(map[int64]int{}, spoken(t, damaged(), c, nil, 60, nil))
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	for i := range int64(101) {
		if gone := i >= 24 && i < 32; (counts[i] == 0) != gone {
			t.Errorf("sentence %d came %d times", i, counts[i])
		}
	}
}

// Damage that is met later gives its slots to other sentences of their bucket.
func TestSentencesDamagedLater(t *testing.T) {
	src := sentences()
	c := textBase()
	c.Batch, c.Quarantine = 8, func(*data.CorruptError) {}
	l, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	src.bad[3] = true
	for range 60 {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		checkPadding(t, b)
		for i, index := range b.Indices {
			if index >= 24 && index < 32 || b.Weight[i] != 1 || length(index) > b.Length {
				t.Fatalf("slot %d has sentence %d of weight %v in a batch of %d", i, index, b.Weight[i], b.Length)
			}
		}
	}
}

func TestSentencesRefuse(t *testing.T) {
	c := textBase()
	c.Flip = true
	if _, err := New(sentences(), c); err == nil || !strings.Contains(err.Error(), "no mirror image") {
		t.Errorf("flips: %v", err)
	}
	c = textBase()
	c.Tail, c.Batch = Drop, 96
	if _, err := New(sentences(), c); err == nil || !strings.Contains(err.Error(), "of any length") {
		t.Errorf("a batch that no bucket fills: %v", err)
	}
}

func TestSentencesAllocateNothing(t *testing.T) {
	c := textBase()
	c.Batch = 8
	l, err := New(sentences(), c)
	if err != nil {
		t.Fatal(err)
	}
	next := func() {
		if _, err := l.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		next()
	}
	if n := testing.AllocsPerRun(100, next); n > 0 {
		t.Errorf("a batch allocates %v times", n)
	}
}
