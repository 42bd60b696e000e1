// Package data is what every data set looks like to a reader: a Schema, a
// Layout of shards made of blocks, and blocks of samples read by number.
//
// A sample is one picture and one label; a point of d coordinates is a picture
// of 1×1×d, and a sentence of at most d tokens one of 1×1×d too (Text). Samples have
// fixed indices 0 … Len−1; blocks are runs of consecutive samples that are read
// together. A Source is immutable and may be read from many goroutines. Order, batches
// and resuming belong to package loader; files to package shard.
package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ebtrain/data/safetensors"
)

// Schema describes one sample: a picture of C planes, each H rows of W values,
// and a label.
type Schema struct {
	C, H, W int
	// DType of the values: U8 (0 … 255), F32, or I32 of sentences.
	DType safetensors.DType
	// Classes names the classes; label i is Classes[i]. Empty for data without
	// labels, whose labels are all −1.
	Classes []string
	// Text is not nil where samples are sentences.
	Text *Text
	// Columns are, of samples that are rows of a table, those of their values; nil of others.
	Columns []Column
}

// Elems is the number of values of one picture.
func (s Schema) Elems() int { return s.C * s.H * s.W }

// SampleBytes is the number of bytes of one picture, and of the longest sentence.
func (s Schema) SampleBytes() int { return s.Elems() * s.DType.Size() }

// String is for messages: "3×32×32 U8".
func (s Schema) String() string { return fmt.Sprintf("%d×%d×%d %s", s.C, s.H, s.W, s.DType) }

// Validate reports sizes out of range and types no reader knows.
func (s Schema) Validate() error {
	var errs []error
	for _, d := range []struct {
		name string
		v    int
	}{{"C", s.C}, {"H", s.H}, {"W", s.W}} {
		if d.v < 1 || d.v > 1<<14 {
			errs = append(errs, fmt.Errorf("%s is %d, expected 1 to %d", d.name, d.v, 1<<14))
		}
	}
	switch {
	case s.Text != nil && s.DType != safetensors.I32:
		errs = append(errs, fmt.Errorf("tokens of type %q, expected I32", string(s.DType)))
	case s.Text != nil:
		errs = append(errs, s.Text.validate(s))
	case s.DType != safetensors.U8 && s.DType != safetensors.F32:
		errs = append(errs, fmt.Errorf("values of type %q, expected U8 or F32", string(s.DType)))
	}
	errs = append(errs, s.checkColumns())
	if errors.Join(errs...) == nil && s.SampleBytes() > 1<<28 {
		errs = append(errs, fmt.Errorf("a sample of %d bytes is over the limit of %d", s.SampleBytes(), 1<<28))
	}
	return errors.Join(errs...)
}

// CheckLabel reports a label that the schema does not have.
func (s Schema) CheckLabel(l int64) error {
	if len(s.Classes) == 0 && l != -1 {
		return fmt.Errorf("label %d in data without classes, expected -1", l)
	}
	if len(s.Classes) > 0 && (l < 0 || l >= int64(len(s.Classes))) {
		return fmt.Errorf("label %d, expected 0 to %d", l, len(s.Classes)-1)
	}
	return nil
}

// Block is a run of samples. ReadBlock fills it, growing its slices as needed,
// so one Block can be read into again and again.
type Block struct {
	Values []byte  // (n, C, H, W), row-major, little-endian; of sentences (tokens)
	Labels []int64 // (n)
	// Ends says of sentences, (n), where each ends in Values, in tokens: they lie
	// one after another. Empty of samples that are all as long.
	Ends []int64
}

// Tokens appends sentence i of the block to dst.
func (b *Block) Tokens(i int, dst []int32) []int32 {
	from := int64(0)
	if i > 0 {
		from = b.Ends[i-1]
	}
	for at := from; at < b.Ends[i]; at++ {
		dst = append(dst, int32(binary.LittleEndian.Uint32(b.Values[4*at:])))
	}
	return dst
}

// Length is the number of tokens of sentence i of the block.
func (b *Block) Length(i int) int {
	if i == 0 {
		return int(b.Ends[0])
	}
	return int(b.Ends[i] - b.Ends[i-1])
}

// Layout says how samples are grouped. Every block has BlockSamples samples
// except the last of each shard, which may have fewer.
type Layout struct {
	BlockSamples int
	Shards       []int64 // samples of each shard, each > 0
}

// Validate reports empty shards and sizes out of range.
func (l Layout) Validate() error {
	if l.BlockSamples < 1 {
		return fmt.Errorf("%d samples in a block, expected at least 1", l.BlockSamples)
	}
	var sum int64
	for i, n := range l.Shards {
		if n < 1 || n > math.MaxUint32-sum {
			return fmt.Errorf("shard %d has %d samples, expected at least 1 and at most %d in all", i, n, uint32(math.MaxUint32))
		}
		sum += n
	}
	return nil
}

// Span is a block's place: which samples it holds and where it lies.
type Span struct {
	Shard   int   // its shard
	InShard int   // its number within the shard
	First   int64 // index of its first sample in the data set
	N       int   // its number of samples
}

// Spans lists all blocks in order.
func (l Layout) Spans() []Span {
	var spans []Span
	var first int64
	for s, n := range l.Shards {
		spans = l.appendShard(spans, s, first)
		first += n
	}
	return spans
}

// SpansOf lists the blocks of one shard in order.
func (l Layout) SpansOf(shard int) []Span {
	var first int64
	for _, n := range l.Shards[:shard] {
		first += n
	}
	return l.appendShard(nil, shard, first)
}

// appendShard appends the blocks of a shard whose first sample has that index.
func (l Layout) appendShard(spans []Span, shard int, first int64) []Span {
	n := l.Shards[shard]
	for b := 0; n > 0; b++ {
		k := min(n, int64(l.BlockSamples))
		spans = append(spans, Span{Shard: shard, InShard: b, First: first, N: int(k)})
		first += k
		n -= k
	}
	return spans
}

// Source is an opened split of a data set: shards, or pictures made on the fly.
type Source interface {
	Schema() Schema
	// Len is the number of samples, at least 1 and below 2³².
	Len() int64
	Layout() Layout
	// Digest names the content, its order and its preprocessing: two sources
	// with equal digests give equal samples at equal indices.
	Digest() string
	// ReadBlock reads block i of Layout().Spans() into dst. It may be called
	// from many goroutines, each with its own dst. Damaged data is a
	// *CorruptError.
	ReadBlock(i int, dst *Block) error
}

// CorruptError is damaged data: which file, where, which samples it costs, and what to do.
type CorruptError struct {
	File   string
	Offset int64 // byte offset in File, −1 if it has no one place
	Frame  int   // frame number in File, −1 if no single one
	First  int64 // index in the split of the first sample lost
	N      int64 // number of samples lost
	Err    error
}

func (e *CorruptError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Frame >= 0 {
		fmt.Fprintf(&b, ": frame %d", e.Frame)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, " at offset %d", e.Offset)
	}
	return fmt.Sprintf("%s (samples %d to %d): %v; copy or import the data set again", b.String(), e.First, e.First+e.N-1, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Grow gives b room for n samples of s, which are all as long.
func (b *Block) Grow(s Schema, n int) {
	b.Values = slices.Grow(b.Values[:0], n*s.SampleBytes())[:n*s.SampleBytes()]
	b.Labels = slices.Grow(b.Labels[:0], n)[:n]
	b.Ends = b.Ends[:0]
}
