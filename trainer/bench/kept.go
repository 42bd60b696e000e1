package main

import (
	"fmt"

	"ebtrain/data"
)

// kept is the first blocks of a data set, in memory. Built-in pictures are drawn when
// they are read, which takes longer than a step of a small network, and by threads that
// draw ahead whenever they please, also while other cases have their turn. They stand
// for data that are there, so they are drawn before anything is measured. It is not
// changed once it is made, and may be read from any goroutine.
type kept struct {
	data.Source
	layout data.Layout
	blocks []data.Block
}

// fewestKept are the samples that are kept, or a batch if that is more.
const fewestKept = 256

// keep reads so many samples of a data set of one shard, and what is left of the last
// block.
func keep(src data.Source, samples int) (*kept, error) {
	k := &kept{Source: src, layout: data.Layout{BlockSamples: src.Layout().BlockSamples, Shards: []int64{0}}}
	for i, span := range src.Layout().Spans() {
		if k.Len() >= int64(samples) {
			break
		}
		var b data.Block
		if err := src.ReadBlock(i, &b); err != nil {
			return nil, err
		}
		k.blocks = append(k.blocks, b)
		k.layout.Shards[0] += int64(span.N)
	}
	return k, nil
}

func (k *kept) Len() int64          { return k.layout.Shards[0] }
func (k *kept) Layout() data.Layout { return k.layout }
func (k *kept) Digest() string      { return fmt.Sprintf("%s, the first %d", k.Source.Digest(), k.Len()) }

// ReadBlock implements data.Source.
func (k *kept) ReadBlock(i int, dst *data.Block) error {
	if i < 0 || i >= len(k.blocks) {
		return fmt.Errorf("block %d of pictures that are kept, expected 0 to %d", i, len(k.blocks)-1)
	}
	b := &k.blocks[i]
	dst.Grow(k.Schema(), len(b.Labels))
	copy(dst.Values, b.Values)
	copy(dst.Labels, b.Labels)
	return nil
}
