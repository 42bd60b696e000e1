package loader

import (
	"slices"
	"sort"

	"ebtrain/data"
	"ebtrain/ddp/philox"
)

// windowBlocks is the number of blocks whose samples are mixed: about 64 MiB
// of pictures, so the small data sets are mixed whole.
const windowBlocks = 256

// Names of the two orders, kept in State. A change of either order is a new
// name.
const (
	shuffledOrder   = "window256-v1"
	sequentialOrder = "sequential-v1"
)

// Sub-purposes of philox.DataOrder; the step is the epoch.
const (
	subShards = 0 // permutation of the shards
	subBlocks = 1 // of the blocks in a shard; sample = shard
	subWindow = 2 // of the samples in a window; sample = window
)

// place is where a sample lies.
type place struct {
	block int // of Layout().Spans()
	in    int // sample in the block
}

// order is the order of one epoch: blocks in a row, cut into windows, the
// samples of each window permuted. Not for concurrent use.
type order struct {
	spans  []data.Span
	name   philox.Name
	blocks []int   // block numbers, in this epoch's order
	per    int     // blocks in a window
	starts []int64 // position of the first sample of each window, and the length
	mixed  bool
	cache  map[int][]place // windows in use
}

// newOrder is the order of an epoch. Shards are permuted, then the blocks of
// each shard.
func newOrder(layout data.Layout, spans []data.Span, seed uint64, epoch int64, shuffle bool) *order {
	o := &order{
		spans: spans, per: 1, mixed: shuffle, cache: map[int][]place{},
		name: philox.Name{Seed: seed, Purpose: philox.DataOrder, Step: uint32(epoch)},
	}
	o.blocks = make([]int, 0, len(spans))
	if shuffle {
		o.per = windowBlocks
		first := make([]int, len(layout.Shards)+1) // first block of each shard
		for _, s := range spans {
			first[s.Shard+1]++
		}
		for i := range layout.Shards {
			first[i+1] += first[i]
		}
		for _, s := range o.perm(subShards, 0, len(layout.Shards)) {
			for _, b := range o.perm(subBlocks, s, first[s+1]-first[s]) {
				o.blocks = append(o.blocks, first[s]+b)
			}
		}
	} else {
		for b := range spans {
			o.blocks = append(o.blocks, b)
		}
	}
	var at int64
	for w := range slices.Chunk(o.blocks, o.per) {
		o.starts = append(o.starts, at)
		for _, b := range w {
			at += int64(spans[b].N)
		}
	}
	o.starts = append(o.starts, at)
	return o
}

func (o *order) perm(sub uint16, sample, n int) []int {
	name := o.name
	name.Sub, name.Sample = sub, uint32(sample)
	return name.Perm(n)
}

// window is the number of the window that holds position pos.
func (o *order) window(pos int64) int {
	return sort.Search(len(o.starts)-1, func(w int) bool { return o.starts[w+1] > pos })
}

// windowOf lists the blocks of window w.
func (o *order) windowOf(w int) []int {
	return o.blocks[w*o.per : min((w+1)*o.per, len(o.blocks))]
}

// at is the sample at position pos.
func (o *order) at(pos int64) place {
	w := o.window(pos)
	places := o.cache[w]
	if places == nil {
		places = o.places(w)
		o.cache[w] = places
	}
	return places[pos-o.starts[w]]
}

// keep forgets windows before w.
func (o *order) keep(w int) {
	for v := range o.cache {
		if v < w {
			delete(o.cache, v)
		}
	}
}

// places lists the samples of window w in order.
func (o *order) places(w int) []place {
	var p []place
	for _, b := range o.windowOf(w) {
		for j := range o.spans[b].N {
			p = append(p, place{b, j})
		}
	}
	if !o.mixed {
		return p
	}
	q := make([]place, len(p))
	for i, k := range o.perm(subWindow, w, len(p)) {
		q[i] = p[k]
	}
	return q
}
