// Package synth is the built-in picture set, drawn from a seed: one coloured
// figure (disc, square, triangle, ring, cross or stripes) on a background that
// fades from one colour to another. A network can learn its layout, a person
// can judge its samples, and nothing is downloaded or written.
//
// Picture i of a split is a pure function of (size, seed, split, i): all
// arithmetic is on integers, so every machine draws the same bytes. A Set is
// immutable and may be read from any goroutine.
package synth

import (
	"cmp"
	"fmt"
	"slices"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/philox"
)

// version is part of the digest: raise it when a picture changes.
const version = 1

const blockSamples = 64

// Config says which pictures to draw. The zero value is the default set.
type Config struct {
	Size  int    // rows, 8 to 256; 0 means 32
	Cols  int    // columns, 8 to 256; 0 means as many as rows
	Seed  uint64 // of the whole set
	Train int64  // samples of the split train; 0 means 8192
	Val   int64  // of val; 0 means 1024
	Test  int64  // of test; 0 means 1024
}

// Splits are the names that Open accepts.
func Splits() []string { return []string{"train", "val", "test"} }

// Classes are the names of the figures, by label.
func Classes() []string {
	return []string{"disc", "square", "triangle", "ring", "cross", "stripes"}
}

// Set is one split of the picture set; it is a data.Source.
type Set struct {
	size  data.Size
	seed  uint64
	split uint16 // position in Splits: no picture is in two splits
	n     int64
	spans []data.Span
}

var _ data.Source = (*Set)(nil)

// Validate reports a size out of range.
func (c Config) Validate() error {
	if size := c.size(); !size.Within(8, 256) {
		return fmt.Errorf("size is %v, expected 8 to 256", size)
	}
	return nil
}

// size is that of a picture.
func (c Config) size() data.Size {
	rows := cmp.Or(c.Size, 32)
	return data.Size{H: rows, W: cmp.Or(c.Cols, rows)}
}

// Open makes a split.
func Open(c Config, split string) (*Set, error) {
	k := slices.Index(Splits(), split)
	if k < 0 {
		return nil, data.NoSplit("synth", split, Splits())
	}
	s := &Set{size: c.size(), seed: c.Seed, split: uint16(k)}
	s.n = []int64{cmp.Or(c.Train, 8192), cmp.Or(c.Val, 1024), cmp.Or(c.Test, 1024)}[k]
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := data.CheckCount(split, s.n); err != nil {
		return nil, err
	}
	s.spans = s.Layout().Spans()
	return s, nil
}

// Schema implements data.Source.
func (s *Set) Schema() data.Schema {
	return data.Schema{C: 3, H: s.size.H, W: s.size.W, DType: safetensors.U8, Classes: Classes()}
}

// Len implements data.Source.
func (s *Set) Len() int64 { return s.n }

// Layout implements data.Source: one shard.
func (s *Set) Layout() data.Layout {
	return data.Layout{BlockSamples: blockSamples, Shards: []int64{s.n}}
}

// Digest implements data.Source.
func (s *Set) Digest() string {
	return fmt.Sprintf("synth:v%d size=%v seed=%d split=%s n=%d", version, s.size, s.seed, Splits()[s.split], s.n)
}

// ReadBlock implements data.Source.
func (s *Set) ReadBlock(i int, dst *data.Block) error {
	if i < 0 || i >= len(s.spans) {
		return fmt.Errorf("synth: block %d, expected 0 to %d", i, len(s.spans)-1)
	}
	span := s.spans[i]
	dst.Grow(s.Schema(), span.N)
	bytes := s.Schema().SampleBytes()
	for j := range span.N {
		dst.Labels[j] = s.draw(span.First+int64(j), dst.Values[j*bytes:(j+1)*bytes])
	}
	return nil
}

// words is the stream of draws of one picture.
type words struct {
	name philox.Name
	i    int
}

// below is the next draw, uniform in [0, n).
func (w *words) below(n int) int {
	w.i++
	return w.name.Intn(w.i-1, n)
}

func (s *Set) words(i int64) *words {
	return &words{name: philox.Name{Seed: s.seed, Purpose: philox.Synthetic, Sub: s.split, Sample: uint32(i)}}
}
