// Package importer reads data sets as their authors publish them and writes
// them as shards: MNIST (idx.gz), CIFAR-10 (binary records or WebDataset tar),
// CelebA (zip or folder), the Frey faces and SVHN (MAT-files), any WebDataset tar,
// any tree or NumPy array of pictures, any text of a sentence a line, any table of numbers,
// and any data.Source.
//
// An importer function (MNIST, CelebA, …) opens the originals and describes
// them as a Set; Run decodes them on all cores and writes them in order, so the
// shards do not depend on the number of cores. Damage is named by file and
// record or entry. A damaged picture can be skipped; a damaged archive cannot,
// because what follows in it is lost.
//
// Pictures are decoded by Go's image/jpeg and image/png, which differ from
// libjpeg by a few levels (chroma is not interpolated); the index says so.
// A Set belongs to one goroutine.
package importer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// Item is one original, not yet decoded.
type Item struct {
	Name  string // file, and record or entry, for messages
	Label int64  // its class; −1 where there are none
	// Values decodes its values, (C, H, W) of the set's schema. It is called at most
	// once, from any goroutine, takes the memory that it needs from b, and gives back all
	// that was taken for the item: what is kept stops the import once it is MemoryLimit.
	Values func(ctx context.Context, b *budget) ([]byte, error)
}

// originals are the items of a split, in order, from the first at each call. An error
// ends the import whatever is to be skipped. What they hold before Values is called is
// taken from b.
type originals func(ctx context.Context, b *budget) iter.Seq2[Item, error]

// reading makes originals of read, which gives one item after another.
func reading(read func(ctx context.Context, b *budget, give func(Item) error) error) originals {
	return func(ctx context.Context, b *budget) iter.Seq2[Item, error] {
		return sequence(func(give func(Item) error) error { return read(ctx, b, give) })
	}
}

// Split is one part of a Set.
type Split struct {
	Name  string
	Count int64 // items, −1 if not known before the end
	Items originals
}

// Set is a data set as it was found. Close it after Run.
type Set struct {
	Schema        data.Schema
	Preprocessing shard.Preprocessing
	Splits        []Split
	Notes         []string // what the user should know of the originals
	close         func() error
}

// Close closes the files of the originals.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// MaxWorkers is the most that Options may ask for. Each has an encoder of its own, of
// several KiB, and places in the queue, so a million take minutes and all the memory.
const MaxWorkers = 1024

// Options of Run.
type Options struct {
	Out     string // directory of the data set
	Force   bool   // replace a data set that is there
	SkipBad bool   // leave damaged pictures out instead of stopping
	Limit   int64  // look at the first items of each split only; 0 means all
	Workers int    // pictures decoded at the same time, at most MaxWorkers; 0 means one per core
	// Bad, if not nil, is told of each picture left out.
	Bad func(shard.Skipped)
	// Progress, if not nil, is called after each item; total is −1 if unknown.
	Progress func(split string, done, total int64)
	// Began, if not nil, is told of the folder that holds everything until the
	// end. A program that must end before Run returns removes it.
	Began func(temporary string)

	memory int64 // of all pictures in work, in bytes; 0 means MemoryLimit
}

// Run writes the set as a data set at o.Out: all of it, or on error nothing.
func Run(ctx context.Context, s *Set, o Options) (x *shard.Index, err error) {
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), MaxWorkers)
	}
	if o.Limit < 0 || o.Workers < 0 || o.Workers > MaxWorkers {
		return nil, fmt.Errorf("limit %d and %d workers, expected 0 or more, and at most %d workers", o.Limit, o.Workers, MaxWorkers)
	}
	w, err := shard.Create(o.Out, shard.Options{Schema: s.Schema, Preprocessing: s.Preprocessing, Force: o.Force, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Abort()) }()
	if o.Began != nil {
		o.Began(w.Temporary())
	}
	for _, p := range s.Splits {
		if err := o.split(ctx, w, p); err != nil {
			return nil, err
		}
	}
	return w.Commit(ctx)
}

// split writes one split.
func (o *Options) split(ctx context.Context, w *shard.Writer, p Split) error {
	total := p.Count
	if o.Limit > 0 && (total < 0 || total > o.Limit) {
		total = o.Limit
	}
	var done, added int64
	err := o.decode(ctx, p.Items, int64(w.Schema().SampleBytes()), func(it Item, values []byte, err error) error {
		done++
		if o.Progress != nil {
			o.Progress(p.Name, done, total)
		}
		if want := w.Schema().SampleBytes(); err == nil && w.Schema().Text == nil && len(values) != want {
			err = fmt.Errorf("%d bytes of pixels, expected %d for %v as in the first picture; give --size to make all alike", len(values), want, w.Schema())
		}
		if err != nil {
			return o.bad(w, p.Name, it.Name, err)
		}
		added++
		return w.Add(ctx, p.Name, values, it.Label)
	})
	if err == nil && added == 0 {
		err = fmt.Errorf("split %s: no %s left of %d", p.Name, noun(w), done)
	}
	return err
}

// noun is what originals are called.
func noun(w *shard.Writer) string {
	switch s := w.Schema(); {
	case s.Text != nil:
		return "lines"
	case s.Columns != nil:
		return "rows"
	}
	return "pictures"
}

// bad stops the import or counts the picture as skipped.
func (o *Options) bad(w *shard.Writer, split, name string, err error) error {
	if !o.SkipBad {
		return fmt.Errorf("%s: %w; mend it, or leave such %s out with --on-bad skip", name, err, noun(w))
	}
	s := shard.Skipped{Split: split, Name: name, Why: err.Error()}
	w.Skip(s)
	if o.Bad != nil {
		o.Bad(s)
	}
	return nil
}
