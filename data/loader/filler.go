package loader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/philox"
)

// filler makes batches, one at a time. It keeps the decoded blocks of the
// pools in use.
type filler struct {
	src    data.Source
	c      Config
	mixing mixing
	schema data.Schema
	layout data.Layout
	spans  []data.Span
	n      int64
	table  [256]float32 // value of each byte

	buckets *buckets // of sentences; nil for others
	line    *line    // of sentences, made when the first batch is
	kept    []int    // blocks, while they are listed

	orders []*order // of the epochs in use
	past   []*order // for reuse
	blocks *blocks  // decoded

	// of the batch being made, for reuse
	at     []place
	epochs []int64 // −1 for an empty slot
	pos    []int64 // in its epoch

	mu  sync.Mutex // guards bad, which State reads
	bad map[int]bool
}

func newFiller(src data.Source, c Config, m mixing, b *buckets) *filler {
	f := &filler{
		src: src, c: c, mixing: m, schema: src.Schema(), layout: src.Layout(), n: src.Len(), buckets: b, bad: map[int]bool{},
	}
	mine := c.Batch / c.World
	f.at, f.epochs, f.pos = make([]place, mine), make([]int64, mine), make([]int64, mine)
	if b != nil {
		for _, block := range b.blocks {
			f.bad[block] = true
		}
	}
	f.spans = f.layout.Spans()
	f.blocks = newBlocks(src, len(f.spans))
	for x := range f.table {
		if c.Range == Unit {
			f.table[x] = float32(x) / 255
		} else {
			f.table[x] = float32(x)/127.5 - 1
		}
	}
	return f
}

// newBatch allocates one batch.
func (f *filler) newBatch() *Batch {
	n := f.c.Batch / f.c.World
	if f.buckets != nil {
		return &Batch{
			Tokens: make([]int32, n*f.schema.W), Lengths: make([]int32, n), Labels: make([]int64, n), Indices: make([]int64, n),
			Weight: make([]float32, n), First: f.c.Rank * n,
		}
	}
	return &Batch{
		X: make([]float32, n*f.schema.Elems()), Labels: make([]int64, n), Indices: make([]int64, n),
		Weight: make([]float32, n), First: f.c.Rank * n,
	}
}

// errPassed says that the passes are over.
var errPassed = errors.New("no more batches")

// fill makes the batch at a spot, and says where the next one is.
func (f *filler) fill(b *Batch, s spot) error {
	if f.buckets != nil {
		return f.fillSentences(b, s)
	}
	c := s.cursor
	b.Epoch, b.Position = c.epoch, c.pos
	b.next = spot{cursor: c.after(int64(f.c.Batch), f.n, f.c.Tail)}
	f.forget(c)
	at, epochs := f.at, f.epochs
	for i := range at {
		s, ok := c.slot(int64(b.First+i), f.n, f.c.Tail)
		if !ok {
			epochs[i] = -1
			continue
		}
		epochs[i], f.pos[i] = s.epoch, s.pos
		at[i] = f.order(s.epoch).at(s.pos)
	}
	if err := f.load(at, epochs); err != nil {
		return err
	}
	if f.c.Tail == Carry {
		if err := f.replace(); err != nil {
			return err
		}
	}
	for i := range at {
		f.put(b, i, at[i], epochs[i])
	}
	return nil
}

func (f *filler) order(epoch int64) *order {
	for _, o := range f.orders {
		if o.epoch == epoch {
			return o
		}
	}
	var o *order
	if n := len(f.past); n > 0 {
		o, f.past = f.past[n-1], f.past[:n-1]
		o.set(epoch)
	} else {
		o = newOrder(f.layout, f.spans, f.c.Seed, epoch, f.mixing)
	}
	f.orders = append(f.orders, o)
	return o
}

// forget drops what the batch at c and those after it do not need: orders of
// past epochs, and blocks outside the pools of the global batch.
func (f *filler) forget(c cursor) {
	f.forgetOrders(c.epoch)
	o := f.order(c.epoch)
	first := o.pool(c.pos)
	o.keep(first)
	last := o.pool(min(c.pos+int64(f.c.Batch), f.n) - 1)
	n := o.mixing.blocks
	f.blocks.keep(o.blocks[first*n : min((last+1)*n, len(o.blocks))])
}

// forgetOrders drops orders of epochs before epoch.
func (f *filler) forgetOrders(epoch int64) {
	kept := f.orders[:0]
	for _, o := range f.orders {
		if o.epoch < epoch {
			f.past = append(f.past, o)
		} else {
			kept = append(kept, o)
		}
	}
	f.orders = kept
}

// load decodes the blocks of at that are not in memory.
func (f *filler) load(at []place, epochs []int64) error {
	for i, p := range at {
		if epochs[i] >= 0 && !f.isBad(p.block) {
			f.blocks.want(p.block)
		}
	}
	return f.blocks.load(func(block int, err error) error {
		c, corrupt := errors.AsType[*data.CorruptError](err)
		if !corrupt || f.c.Quarantine == nil {
			return fmt.Errorf("loader: %w", err)
		}
		f.setBad(block)
		f.c.Quarantine(c)
		return nil
	})
}

// oncePerFile is tell, which may be nil, that is told but once of a file of which nothing can
// be read, though each of its blocks is damaged.
func oncePerFile(tell func(*data.CorruptError)) func(*data.CorruptError) {
	if tell == nil {
		return nil
	}
	told := map[string]bool{}
	return func(e *data.CorruptError) {
		if e.Frame < 0 && told[e.File] {
			return
		}
		told[e.File] = told[e.File] || e.Frame < 0
		tell(e)
	}
}

// replace gives each slot of a damaged block another sample.
func (f *filler) replace() error {
	for i := range f.at { // Carry has no empty slots
		if !f.isBad(f.at[i].block) {
			continue
		}
		if err := f.substitute(i); err != nil {
			return err
		}
	}
	return nil
}

// substitute gives slot i the next sample that can be read, of sentences of its
// bucket, in this epoch's order: of its pool, from the pool's end on to its
// begin, and then, where all of that is damaged, of the pools after it, and those
// from the epoch's begin on, each from the slot's own place in its pool on: so the slots
// of a pool that is lost do not all take one sample. That depends on the data alone, not
// on which rank met the damage when.
func (f *filler) substitute(i int) error {
	o, was := f.order(f.epochs[i]), f.at[i]
	own := o.pool(f.pos[i])
	from, pools := int(f.pos[i]-o.starts[own]), len(o.starts)-1
	for n := range pools {
		row := o.places((own + n) % pools)
		for k := range row {
			other := row[(from+k)%len(row)]
			if f.isBad(other.block) || f.buckets != nil && f.bucket(other) != f.bucket(was) {
				continue
			}
			f.at[i] = other
			if err := f.load(f.at[i:i+1], f.epochs[i:i+1]); err != nil {
				return err
			}
			if !f.isBad(other.block) {
				return nil
			}
		}
	}
	return fmt.Errorf("loader: every block that has a sample for the place of number %d is damaged, as its own is: copy or import the data set again", f.spans[was.block].First+int64(was.in))
}

// put writes one sample into slot i.
func (f *filler) put(b *Batch, i int, p place, epoch int64) {
	n := f.schema.Elems()
	x := b.X[i*n : (i+1)*n]
	b.Labels[i], b.Indices[i], b.Weight[i] = -1, -1, 0
	if epoch < 0 {
		clear(x)
		return
	}
	b.Indices[i] = f.spans[p.block].First + int64(p.in)
	block := f.blocks.decoded[p.block]
	if block == nil || f.isBad(p.block) {
		clear(x)
		return
	}
	b.Labels[i], b.Weight[i] = block.Labels[p.in], 1
	raw := block.Values[p.in*f.schema.SampleBytes() : (p.in+1)*f.schema.SampleBytes()]
	if f.schema.DType == safetensors.U8 {
		for j, v := range raw {
			x[j] = f.table[v]
		}
	} else {
		for j := range x {
			x[j] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:]))
		}
	}
	if f.c.Flip && flipped(f.c.Seed, epoch, b.Indices[i]) {
		for row := range slices.Chunk(x, f.schema.W) {
			slices.Reverse(row)
		}
	}
}

// flipped says whether a sample is mirrored in an epoch.
func flipped(seed uint64, epoch, index int64) bool {
	name := philox.Name{Seed: seed, Purpose: philox.Augment, Sub: philox.AugmentFlip, Step: uint32(epoch), Sample: uint32(index)}
	return name.Uint32(0)>>31 == 1
}

func (f *filler) isBad(block int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bad[block]
}

func (f *filler) setBad(block int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad[block] = true
}

// quarantine lists the blocks found damaged.
func (f *filler) quarantine() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := make([]int, 0, len(f.bad))
	for b := range f.bad {
		q = append(q, b)
	}
	slices.Sort(q)
	return q
}
