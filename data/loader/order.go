package loader

import (
	"slices"
	"sort"

	"ebtrain/data"
	"ebtrain/ddp/philox"
)

// place is where a sample lies.
type place struct {
	block int // of Layout().Spans()
	in    int // sample in the block
}

// order is the order of one epoch: blocks in a row, cut into pools, the
// samples of each pool permuted. Its memory serves one epoch after another
// (set). Not for concurrent use.
type order struct {
	layout data.Layout
	spans  []data.Span
	epoch  int64
	seed   uint64
	mixing mixing
	blocks []int   // block numbers, in this epoch's order
	starts []int64 // position of the first sample of each pool, and the length
	ready  []pool  // pools in use
	spare  [][]place

	first  []int // first block of each shard
	shards []int // a permutation, while it is needed
	inside []int // another
	row    []place
}

// pool is the order of the samples of one pool.
type pool struct {
	number int
	places []place
}

// newOrder is the order of an epoch.
func newOrder(layout data.Layout, spans []data.Span, seed uint64, epoch int64, m mixing) *order {
	o := &order{layout: layout, spans: spans, seed: seed, mixing: m, blocks: make([]int, 0, len(spans))}
	o.first = make([]int, len(layout.Shards)+1)
	for _, s := range spans {
		o.first[s.Shard+1]++
	}
	for i := range layout.Shards {
		o.first[i+1] += o.first[i]
	}
	o.set(epoch)
	return o
}

// set makes o the order of another epoch.
func (o *order) set(epoch int64) {
	o.epoch = epoch
	o.keep(len(o.starts)) // none
	o.arrange()
	o.starts = append(o.starts[:0], 0)
	at := int64(0)
	for blocks := range slices.Chunk(o.blocks, o.mixing.blocks) {
		for _, b := range blocks {
			at += int64(o.spans[b].N)
		}
		o.starts = append(o.starts, at)
	}
}

// arrange puts the blocks in this epoch's order.
func (o *order) arrange() {
	switch o.mixing.version {
	case sequential:
		o.blocks = o.blocks[:0]
		for b := range o.spans {
			o.blocks = append(o.blocks, b)
		}
	case withinShards:
		o.blocks = o.blocks[:0]
		o.shards = o.permute(o.shards, philox.DataOrderShards, 0, len(o.layout.Shards))
		for _, s := range o.shards {
			o.inside = o.permute(o.inside, philox.DataOrderBlocks, s, o.first[s+1]-o.first[s])
			for _, b := range o.inside {
				o.blocks = append(o.blocks, o.first[s]+b)
			}
		}
	case acrossShards:
		o.blocks = o.permute(o.blocks, philox.DataOrderAll, 0, len(o.spans))
	}
}

// permute is a permutation of n numbers in the memory of p, if there is enough.
func (o *order) permute(p []int, sub uint16, sample, n int) []int {
	p = slices.Grow(p[:0], n)[:n]
	philox.Name{Seed: o.seed, Purpose: philox.DataOrder, Sub: sub, Step: uint32(o.epoch), Sample: uint32(sample)}.Permute(p)
	return p
}

// pool is the number of the pool that holds position pos.
func (o *order) pool(pos int64) int {
	return sort.Search(len(o.starts)-1, func(n int) bool { return o.starts[n+1] > pos })
}

// blocksOf lists the blocks of a pool.
func (o *order) blocksOf(number int) []int {
	return o.blocks[number*o.mixing.blocks : min((number+1)*o.mixing.blocks, len(o.blocks))]
}

// at is the sample at position pos.
func (o *order) at(pos int64) place {
	n := o.pool(pos)
	return o.places(n)[pos-o.starts[n]]
}

// keep forgets the pools before that of the number.
func (o *order) keep(number int) {
	kept := o.ready[:0]
	for _, r := range o.ready {
		if r.number < number {
			o.spare = append(o.spare, r.places)
		} else {
			kept = append(kept, r)
		}
	}
	o.ready = kept
}

// places lists the samples of a pool in order.
func (o *order) places(number int) []place {
	for _, r := range o.ready {
		if r.number == number {
			return r.places
		}
	}
	var p []place
	if n := len(o.spare); n > 0 {
		p, o.spare = o.spare[n-1], o.spare[:n-1]
	}
	o.row = o.row[:0]
	for _, b := range o.blocksOf(number) {
		for j := range o.spans[b].N {
			o.row = append(o.row, place{b, j})
		}
	}
	if o.mixing.version == sequential {
		p = append(p[:0], o.row...)
	} else {
		o.inside = o.permute(o.inside, philox.DataOrderPool, number, len(o.row))
		p = slices.Grow(p[:0], len(o.row))[:len(o.row)]
		for i, k := range o.inside {
			p[i] = o.row[k]
		}
	}
	o.ready = append(o.ready, pool{number, p})
	return p
}
