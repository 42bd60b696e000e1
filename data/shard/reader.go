package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"ebtrain/data"
)

// Reader is one opened split; it is a data.Source.
type Reader struct {
	dir    string
	split  string
	index  *Index
	schema data.Schema
	layout data.Layout
	spans  []data.Span
	length int64
	digest string
	dec    *zstd.Decoder
	open   func(path string) (file, error) // openFile; tests have others

	mu     sync.Mutex
	tables []*table // by shard, read when first needed
	lost   []error  // by shard, why its table cannot be read, once that was tried twice
	spare  []*scratch
}

var _ data.Source = (*Reader)(nil)

// file is what is read of an *os.File.
type file interface {
	io.ReaderAt
	io.Closer
	Name() string
}

func openFile(path string) (file, error) { return os.Open(path) }

// ReadIndex reads and checks the index of the data set at dir.
func ReadIndex(dir string) (*Index, error) { return readIndex(dir) }

// Open opens a split of the data set at dir. It checks the index and the size
// of every shard; frames are checked as they are read.
func Open(dir, split string) (*Reader, error) {
	x, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range x.Splits[split].Shards {
		if err := checkSize(shardPath(dir, e), e); err != nil {
			return nil, err
		}
	}
	r, err := newReader(dir, split, x)
	if err != nil {
		return nil, err
	}
	r.spans = r.layout.Spans()
	return r, nil
}

// newReader makes a reader that has no spans yet.
func newReader(dir, split string, x *Index) (*Reader, error) {
	p, ok := x.Splits[split]
	if !ok {
		return nil, data.NoSplit(dir, split, slices.Sorted(maps.Keys(x.Splits)))
	}
	r := &Reader{
		dir: dir, split: split, index: x, schema: x.Schema.data(), length: int64(p.Samples),
		digest: x.digest(split), layout: data.Layout{BlockSamples: x.BlockSamples}, tables: make([]*table, len(p.Shards)), lost: make([]error, len(p.Shards)), open: openFile,
	}
	for _, e := range p.Shards {
		r.layout.Shards = append(r.layout.Shards, int64(e.Samples))
	}
	if err := r.layout.Validate(); err != nil {
		return nil, fmt.Errorf("%s: split %s: %w", dir, split, err)
	}
	var err error
	if t := x.Schema.Text; t != nil {
		if r.schema.Text.Words, err = t.words(dir); err != nil {
			return nil, err
		}
	}
	r.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlockBytes))
	return r, err
}

// checkSize compares a shard's size with its entry.
func checkSize(path string, e Entry) error {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: missing, but the index lists it; copy or import the data set again", path)
	}
	if err != nil {
		return err
	}
	switch size := uint64(st.Size()); {
	case size < e.Bytes:
		return fmt.Errorf("%s: ends at offset %d, expected %d bytes: torn or cut short; copy or import it again", path, size, e.Bytes)
	case size > e.Bytes:
		return fmt.Errorf("%s: has %d bytes, expected %d: not the file that the index lists; copy or import the data set again", path, size, e.Bytes)
	}
	return nil
}

func (r *Reader) path(shard int) string {
	return shardPath(r.dir, r.index.Splits[r.split].Shards[shard])
}

func shardPath(dir string, e Entry) string { return filepath.Join(dir, filepath.FromSlash(e.File)) }

// Schema implements data.Source.
func (r *Reader) Schema() data.Schema { return r.schema }

// Len implements data.Source.
func (r *Reader) Len() int64 { return r.length }

// Layout implements data.Source.
func (r *Reader) Layout() data.Layout { return r.layout }

// Digest implements data.Source. It covers the uncompressed tensors, the
// preprocessing and the layout.
func (r *Reader) Digest() string { return r.digest }

// ReadBlock implements data.Source. A block that does not decode is read a
// second time before it is given up, and so is a shard's table of frames: after that no
// block of the shard is tried.
func (r *Reader) ReadBlock(i int, dst *data.Block) error {
	err := r.readBlock(i, dst)
	if err != nil {
		err = r.readBlock(i, dst)
	}
	if c, corrupt := errors.AsType[*data.CorruptError](err); corrupt && c.Frame < 0 {
		r.lose(r.spans[i].Shard, err)
	}
	return err
}

// lose remembers that a shard's table cannot be read.
func (r *Reader) lose(shard int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[shard] = why
}

// whyLost is why a shard's table cannot be read; nil if that is not known.
func (r *Reader) whyLost(shard int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[shard]
}

func (r *Reader) readBlock(i int, dst *data.Block) error {
	if i < 0 || i >= len(r.spans) {
		return fmt.Errorf("%s: block %d, expected 0 to %d", r.dir, i, len(r.spans)-1)
	}
	s := r.spans[i]
	if err := r.whyLost(s.Shard); err != nil {
		return err
	}
	f, err := r.open(r.path(s.Shard))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	t, err := r.table(f, s.Shard)
	if err != nil {
		return err
	}
	mem := r.scratch()
	defer r.keep(mem)
	if r.schema.Text == nil {
		dst.Grow(r.schema, s.N)
	} else {
		dst.Labels, dst.Ends = slices.Grow(dst.Labels[:0], s.N)[:s.N], slices.Grow(dst.Ends[:0], s.N)[:s.N]
	}
	frame := t.frames[t.labels+s.InShard]
	mem.labels, err = mem.frame(f, r.dec, frame, mem.labels)
	if err == nil {
		err = r.labels(mem.labels, dst.Labels)
	}
	if err == nil {
		frame = t.frames[t.values+s.InShard]
		dst.Values, err = mem.frame(f, r.dec, frame, dst.Values)
	}
	if err == nil && r.schema.Text != nil {
		frame = t.frames[t.ends+s.InShard]
		if mem.labels, err = mem.frame(f, r.dec, frame, mem.labels); err == nil {
			err = r.ends(mem.labels, len(dst.Values), dst.Ends)
		}
		if err == nil {
			frame = t.frames[t.values+s.InShard]
			err = r.tokens(dst, mem)
		}
	}
	if err != nil {
		return &data.CorruptError{File: f.Name(), Frame: int(frame.ID), Offset: int64(frame.CompressedOffset), First: s.First, N: int64(s.N), Err: err}
	}
	return nil
}

// scratch is memory to read a block with, used before if there is any.
func (r *Reader) scratch() *scratch {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		s := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return s
	}
	return &scratch{}
}

func (r *Reader) keep(s *scratch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = append(r.spare, s)
}

func (r *Reader) labels(raw []byte, dst []int64) error {
	for j := range dst {
		dst[j] = int64(binary.LittleEndian.Uint64(raw[8*j:]))
		if err := r.schema.CheckLabel(dst[j]); err != nil {
			return fmt.Errorf("sample %d of the frame: %w", j, err)
		}
	}
	return nil
}

// table returns the shard's frames, reading them at first use: without the lock, since
// storage may be slow, and others read other shards meanwhile, or this one's frames too.
func (r *Reader) table(f file, shard int) (*table, error) {
	r.mu.Lock()
	t := r.tables[shard]
	r.mu.Unlock()
	if t != nil {
		return t, nil
	}
	e := r.index.Splits[r.split].Shards[shard]
	t, err := r.readTable(f, e)
	if err != nil {
		var first int64
		for _, n := range r.layout.Shards[:shard] {
			first += n
		}
		return nil, &data.CorruptError{File: f.Name(), Frame: -1, Offset: -1, First: first, N: int64(e.Samples), Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tables[shard] = t
	return t, nil
}
