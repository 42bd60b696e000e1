package loader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/philox"
)

// filler makes batches, one at a time. It keeps the decoded blocks of the
// windows in use.
type filler struct {
	src    data.Source
	c      Config
	schema data.Schema
	layout data.Layout
	spans  []data.Span
	n      int64
	table  [256]float32 // value of each byte

	orders map[int64]*order    // by epoch
	blocks map[int]*data.Block // decoded, by number
	spare  []*data.Block       // for reuse

	// of the batch being made, for reuse
	at     []place
	epochs []int64 // −1 for an empty slot
	need   map[int]bool

	mu  sync.Mutex // guards bad, which State reads
	bad map[int]bool
}

func newFiller(src data.Source, c Config) *filler {
	f := &filler{
		src: src, c: c, schema: src.Schema(), layout: src.Layout(), n: src.Len(),
		orders: map[int64]*order{}, blocks: map[int]*data.Block{}, bad: map[int]bool{}, need: map[int]bool{},
	}
	f.at, f.epochs = make([]place, c.Batch/c.World), make([]int64, c.Batch/c.World)
	f.spans = f.layout.Spans()
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
	return &Batch{
		X: make([]float32, n*f.schema.Elems()), Labels: make([]int64, n), Indices: make([]int64, n),
		Weight: make([]float32, n), First: f.c.Rank * n,
	}
}

// fill makes the batch at c.
func (f *filler) fill(b *Batch, c cursor) error {
	b.Epoch, b.Position = c.epoch, c.pos
	f.forget(c)
	at, epochs := f.at, f.epochs
	for i := range at {
		s, ok := c.slot(int64(b.First+i), f.n, f.c.Tail)
		if !ok {
			epochs[i] = -1
			continue
		}
		epochs[i] = s.epoch
		at[i] = f.order(s.epoch).at(s.pos)
	}
	if err := f.load(at, epochs); err != nil {
		return err
	}
	for i := range at {
		f.put(b, i, at[i], epochs[i])
	}
	return nil
}

func (f *filler) order(epoch int64) *order {
	o := f.orders[epoch]
	if o == nil {
		o = newOrder(f.layout, f.spans, f.c.Seed, epoch, f.c.Shuffle)
		f.orders[epoch] = o
	}
	return o
}

// forget drops what the batch at c and those after it do not need: orders of
// past epochs, and blocks outside the windows of the global batch.
func (f *filler) forget(c cursor) {
	for e := range f.orders {
		if e < c.epoch {
			delete(f.orders, e)
		}
	}
	clear(f.need)
	o := f.order(c.epoch)
	first := o.window(c.pos)
	o.keep(first)
	last := c.pos + int64(f.c.Batch) - 1
	for w := first; w < len(o.starts)-1 && o.starts[w] <= last; w++ {
		for _, b := range o.windowOf(w) {
			f.need[b] = true
		}
	}
	for i, b := range f.blocks {
		if !f.need[i] {
			f.spare = append(f.spare, b)
			delete(f.blocks, i)
		}
	}
}

// load decodes the blocks of at that are not in memory, on all cores.
func (f *filler) load(at []place, epochs []int64) error {
	var missing []int
	for i, p := range at {
		if epochs[i] >= 0 && f.blocks[p.block] == nil && !f.isBad(p.block) && !slices.Contains(missing, p.block) {
			missing = append(missing, p.block)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing) // so that of several errors the same one is reported
	dst := make([]*data.Block, len(missing))
	errs := make([]error, len(missing))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, b := range missing {
		dst[i] = &data.Block{}
		if k := len(f.spare); k > 0 {
			dst[i], f.spare = f.spare[k-1], f.spare[:k-1]
		}
		g.Go(func() error {
			errs[i] = f.src.ReadBlock(b, dst[i])
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, b := range missing {
		if errs[i] == nil {
			f.blocks[b] = dst[i]
			continue
		}
		c, corrupt := errors.AsType[*data.CorruptError](errs[i])
		if !corrupt || f.c.Quarantine == nil {
			return fmt.Errorf("loader: %w", errs[i])
		}
		f.setBad(b)
		f.c.Quarantine(c)
	}
	return nil
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
	block := f.blocks[p.block]
	if block == nil || f.isBad(p.block) {
		clear(x)
		return
	}
	b.Labels[i], b.Weight[i] = block.Labels[p.in], 1
	raw := block.Pixels[p.in*f.schema.SampleBytes() : (p.in+1)*f.schema.SampleBytes()]
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
	name := philox.Name{Seed: seed, Purpose: philox.Augment, Step: uint32(epoch), Sample: uint32(index)}
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
