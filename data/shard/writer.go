package shard

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/klauspost/compress/zstd"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
)

// Options of a Writer.
type Options struct {
	Schema        data.Schema
	Preprocessing Preprocessing
	// Force replaces an existing data set, damaged or not. Anything else at the
	// same place is never replaced, nor a data set with other files in its folder.
	Force bool
	// Workers compress at the same time; 0 means one per core. The bytes
	// written do not depend on it.
	Workers int
	// BlockSamples and ShardSamples override the number of samples in a block
	// and in a full shard; 0 means about 256 KiB and 48 MiB of pictures.
	BlockSamples, ShardSamples int
}

// Writer writes a data set. Exactly one of Commit and Abort must end it; Abort
// after Commit does nothing, so it can be deferred.
type Writer struct {
	dir     string             // final place
	folder  *atomicfile.Folder // where everything is written until Commit; nil when ended
	parents []string           // directories made for dir, outermost first
	opts    Options
	index   Index
	bufs    map[string]*buffer
	enc     *zstd.Encoder
	shard   int // samples in a full shard
	most    int // bytes of the index
}

// buffer is the shard that a split is filling.
type buffer struct {
	values []byte
	labels []byte // little-endian int64
	n      int

	ends           []byte // of sentences, little-endian uint64: where each ends, in tokens
	words, unknown uint64
	tokens         []int32 // of one sentence
}

// Create begins the data set at dir in a temporary directory beside it.
func Create(dir string, o Options) (*Writer, error) {
	if err := o.Schema.Validate(); err != nil {
		return nil, fmt.Errorf("%s: schema: %w", dir, err)
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	dir = filepath.Clean(dir)
	if err := checkPlace(dir); err != nil {
		return nil, err
	}
	if err := atomicfile.Sweep(filepath.Dir(dir)); err != nil { // may put a data set back at dir
		return nil, fmt.Errorf("%s: what a killed process left beside it: %w", dir, err)
	}
	if err := checkTarget(dir, o.Force); err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, opts: o, bufs: map[string]*buffer{}, most: maxIndexBytes}
	block, shard := layoutFor(o.Schema)
	block, w.shard = cmp.Or(o.BlockSamples, block), cmp.Or(o.ShardSamples, shard)
	if block < 1 || w.shard < 1 || block > maxBlockBytes/o.Schema.SampleBytes() {
		return nil, fmt.Errorf("%s: %d samples in a block and %d in a shard, expected at least 1 and at most %d bytes in a block", dir, block, w.shard, maxBlockBytes)
	}
	classes := o.Schema.Classes
	if classes == nil {
		classes = []string{}
	}
	features := []string{}
	if o.Schema.Text != nil {
		if err := data.CheckWords(o.Schema.Text.Words); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		features = append(features, featureText)
	}
	w.index = Index{
		Format: formatName, Version: Version{Major, Minor}, RequiredFeatures: features,
		Schema:       Schema{DType: o.Schema.DType, Shape: [3]int{o.Schema.C, o.Schema.H, o.Schema.W}, Classes: classes, Text: textIndex(o.Schema.Text), Columns: o.Schema.Columns},
		BlockSamples: block, Preprocessing: o.Preprocessing, Splits: map[string]Split{},
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(o.Workers), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	w.enc = enc
	if w.parents, err = makeParents(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if w.folder, err = atomicfile.NewFolder(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: cannot write beside it: %w", dir, cause(err)), removeEmpty(w.parents))
	}
	return w, nil
}

// Temporary is the folder beside the final one that holds everything until
// Commit. A program that must end before it can call Abort removes it; if it
// does not, the next Create in the same place does.
func (w *Writer) Temporary() string { return w.folder.Temporary() }

// Schema is that of the samples.
func (w *Writer) Schema() data.Schema { return w.opts.Schema }

// Add appends a sample to a split. values is (C, H, W), little-endian; of a
// sentence its own tokens, from Begin to End.
func (w *Writer) Add(ctx context.Context, split string, values []byte, label int64) error {
	if w.opts.Schema.Text == nil && len(values) != w.opts.Schema.SampleBytes() {
		return fmt.Errorf("%s: a sample of %d bytes, expected %d for %v", w.dir, len(values), w.opts.Schema.SampleBytes(), w.opts.Schema)
	}
	if err := w.opts.Schema.CheckLabel(label); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	b := w.bufs[split]
	if b == nil {
		if !validSplit(split) {
			return fmt.Errorf("%s: %q cannot name a split: use letters, digits, '-' and '_'", w.dir, split)
		}
		b = &buffer{}
		w.bufs[split] = b
	}
	if w.opts.Schema.Text == nil {
		b.values = append(b.values, values...)
	} else if err := b.addTokens(w.opts.Schema, values); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	b.labels = binary.LittleEndian.AppendUint64(b.labels, uint64(label))
	b.n++
	if b.n == w.shard {
		return w.flush(ctx, split, b)
	}
	return nil
}

// Skip records that the importer left a picture out: the first ones by name.
func (w *Writer) Skip(s Skipped) {
	if len(w.index.Skipped) == maxSkipped {
		w.index.SkippedMore++
		return
	}
	w.index.Skipped = append(w.index.Skipped, s)
}

// flush writes a split's buffer as its next shard.
func (w *Writer) flush(ctx context.Context, split string, b *buffer) error {
	p := w.index.Splits[split]
	name := fmt.Sprintf("%s/shard-%05d.safetensors.zst", split, len(p.Shards))
	path := filepath.Join(w.folder.Temporary(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return failed(w.dir, split, err)
	}
	e, err := w.writeShard(ctx, path, b)
	if err != nil {
		return failed(w.dir, name, err)
	}
	e.File = name
	p.Shards = append(p.Shards, e)
	p.Samples += e.Samples
	p.Words, p.Unknown = b.words, b.unknown
	w.index.Splits[split] = p
	b.values, b.labels, b.ends, b.n = b.values[:0], b.labels[:0], b.ends[:0], 0
	return nil
}

// Commit writes what is buffered and the index, and moves the data set to its
// place. On error nothing is left and nothing was replaced.
func (w *Writer) Commit(ctx context.Context) (*Index, error) {
	if err := w.finish(ctx); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	folder := w.folder
	w.folder = nil
	if err := folder.Place(); err != nil {
		return nil, errors.Join(failed(w.dir, "", err), w.enc.Close(), removeEmpty(w.parents))
	}
	return &w.index, w.enc.Close()
}

// finish writes what is buffered and the index into the temporary folder.
func (w *Writer) finish(ctx context.Context) error {
	for split, b := range w.bufs {
		if b.n > 0 {
			if err := w.flush(ctx, split, b); err != nil {
				return err
			}
		}
	}
	if len(w.index.Splits) == 0 {
		return fmt.Errorf("%s: no samples were written", w.dir)
	}
	for split := range w.index.Splits {
		if err := atomicfile.SyncDir(filepath.Join(w.folder.Temporary(), split)); err != nil {
			return failed(w.dir, split, err)
		}
	}
	if err := writeVocabulary(w.folder.Temporary(), w.opts.Schema.Text); err != nil {
		return failed(w.dir, vocabularyName, err)
	}
	b, err := w.index.encode()
	if err != nil {
		return err
	}
	if len(b) > w.most {
		return fmt.Errorf("%s: its index would have %d bytes, and readers take %d: give fewer originals, or have fewer of them left out", w.dir, len(b), w.most)
	}
	if err := atomicfile.WriteBytes(filepath.Join(w.folder.Temporary(), IndexName), b); err != nil {
		return failed(w.dir, IndexName, err)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return checkTarget(w.dir, w.opts.Force) // something may have appeared meanwhile
}

// Abort removes everything written. It does nothing after Commit.
func (w *Writer) Abort() error {
	if w.folder == nil {
		return nil
	}
	err := w.folder.Discard()
	w.folder = nil
	return errors.Join(err, w.enc.Close(), removeEmpty(w.parents))
}

func validSplit(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return s != ""
}
