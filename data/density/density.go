// Package density is the built-in sets of points, drawn from a seed and
// densities that are known exactly, so what a model learns of them can be judged
// against the truth: a checkerboard and a mixture of Gaussians. Nothing is
// downloaded or written.
//
// A point is a sample of 1×1×d values, F32, without a label. Point i of a split is
// a pure function of (density, seed, split, i), and the bits are the same on
// every machine: each operation is rounded by itself. A Set is immutable and may
// be read from any goroutine.
package density

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/philox"
)

// version is part of the digest: raise it when a point changes.
const version = 1

// blockBytes are those of a block, as in shards: so a set that is written as
// shards has the same blocks, and comes in the same order.
const blockBytes = 256 << 10

// Usual numbers of points in each split.
const (
	Train = 60_000
	Val   = 10_000
	Test  = 10_000
)

// Density is what points are drawn from.
type Density interface {
	// Validate reports settings out of range, in a sentence that begins with the name of one.
	Validate() error
	// Dim is d, the number of coordinates.
	Dim() int
	// String is the name and all settings, as in "checkerboard cols=2".
	String() string
	// stream tells the densities' draws apart.
	stream() uint16
	// draw makes the point that n names, of Dim coordinates.
	draw(n philox.Name, dst []float64)
}

// Config says which points to draw.
type Config struct {
	Density          Density
	Seed             uint64
	Train, Val, Test int64 // points in each split
}

// Splits are the names that Open accepts.
func Splits() []string { return []string{"train", "val", "test"} }

// Set is one split; it is a data.Source.
type Set struct {
	density Density
	seed    uint64
	split   int // position in Splits: no draw serves two
	n       int64
	spans   []data.Span
}

var _ data.Source = (*Set)(nil)

// Open makes a split.
func Open(c Config, split string) (*Set, error) {
	k := slices.Index(Splits(), split)
	if k < 0 {
		return nil, data.NoSplit(c.Density.String(), split, Splits())
	}
	s := &Set{density: c.Density, seed: c.Seed, split: k, n: []int64{c.Train, c.Val, c.Test}[k]}
	err := c.Density.Validate()
	if err == nil {
		err = s.Schema().Validate()
	}
	if err == nil {
		err = data.CheckCount(split, s.n)
	}
	if err != nil {
		return nil, err
	}
	s.spans = s.Layout().Spans()
	return s, nil
}

// Schema implements data.Source.
func (s *Set) Schema() data.Schema {
	return data.Schema{C: 1, H: 1, W: s.density.Dim(), DType: safetensors.F32}
}

// Len implements data.Source.
func (s *Set) Len() int64 { return s.n }

// Layout implements data.Source: one shard.
func (s *Set) Layout() data.Layout {
	return data.Layout{BlockSamples: max(1, blockBytes/s.Schema().SampleBytes()), Shards: []int64{s.n}}
}

// Digest implements data.Source.
func (s *Set) Digest() string {
	return fmt.Sprintf("density:v%d %v seed=%d split=%s n=%d", version, s.density, s.seed, Splits()[s.split], s.n)
}

// ReadBlock implements data.Source.
func (s *Set) ReadBlock(i int, dst *data.Block) error {
	if i < 0 || i >= len(s.spans) {
		return fmt.Errorf("%v: block %d, expected 0 to %d", s.density, i, len(s.spans)-1)
	}
	span := s.spans[i]
	dst.Grow(s.Schema(), span.N)
	name := philox.Name{Seed: s.seed, Purpose: philox.Generated, Sub: s.density.stream(), Step: uint32(s.split)}
	x := make([]float64, s.density.Dim())
	for j := range span.N {
		dst.Labels[j] = -1
		name.Sample = uint32(span.First + int64(j))
		s.density.draw(name, x)
		for k, v := range x {
			binary.LittleEndian.PutUint32(dst.Values[4*(j*len(x)+k):], math.Float32bits(float32(v)))
		}
	}
	return nil
}

// Streams of draws of the purpose Generated, by density.
const (
	checkerboardStream = iota
	gaussStream
)
