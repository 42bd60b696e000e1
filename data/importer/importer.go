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
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// Item is one original, not yet decoded.
type Item struct {
	Name  string // file, and record or entry, for messages
	Label int64
	// Values decodes its values, (C, H, W) of the set's schema. It is called at most
	// once, from any goroutine, and takes the memory that it needs from b.
	Values func(ctx context.Context, b *budget) ([]byte, error)
}

// Split is one part of a Set.
type Split struct {
	Name  string
	Count int64 // items, −1 if not known before the end
	// Items in order. An error ends the import whatever is to be skipped. What
	// they hold before Values is called is taken from b.
	Items func(ctx context.Context, b *budget) iter.Seq2[Item, error]
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

// Options of Run.
type Options struct {
	Out     string // directory of the data set
	Force   bool   // replace a data set that is there
	SkipBad bool   // leave damaged pictures out instead of stopping
	Limit   int64  // look at the first items of each split only; 0 means all
	Workers int    // pictures decoded at the same time; 0 means one per core
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
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Limit < 0 || o.Workers < 0 {
		return nil, fmt.Errorf("limit %d and %d workers, expected 0 or more", o.Limit, o.Workers)
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

// job is an item on its way through the workers.
type job struct {
	item   Item
	values []byte
	err    error
	done   chan struct{}
	fatal  error // the items ended with it
}

// decode decodes items on o.Workers goroutines and gives them to each in their
// own order, from one goroutine. What is in work at any time takes no more than
// o.memory: a quarter, at most, is for samples that wait for their turn.
func (o *Options) decode(ctx context.Context, items func(context.Context, *budget) iter.Seq2[Item, error], sample int64, each func(Item, []byte, error) error) error {
	g, ctx := errgroup.WithContext(ctx)
	memory := cmp.Or(o.memory, MemoryLimit)
	done := newBudget(max(sample, min(memory/4, 8*int64(o.Workers)*sample)))
	work := newBudget(memory - done.limit)
	queue := make(chan *job, 8*o.Workers) // in order
	todo := make(chan *job)
	g.Go(func() error {
		defer close(queue)
		defer close(todo)
		var n int64
		for it, err := range items(ctx, work) {
			if err := done.take(ctx, sample); err != nil { // in order, so the first in turn has what it needs
				return err
			}
			j := &job{item: it, done: make(chan struct{}), fatal: err}
			for _, c := range []chan<- *job{queue, todo} {
				select {
				case c <- j:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			if n++; err != nil || n == o.Limit {
				return nil
			}
		}
		return nil
	})
	for range o.Workers {
		g.Go(func() error {
			for j := range todo {
				if j.fatal == nil {
					j.values, j.err = j.item.Values(ctx, work)
				}
				close(j.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		for j := range queue {
			select {
			case <-j.done:
			case <-ctx.Done(): // the producer may have died between the two channels
			}
			if ctx.Err() != nil { // then j.err is of no picture
				return context.Cause(ctx)
			}
			if j.fatal != nil { // reported in its turn, so always the same error is first
				return j.fatal
			}
			if err := each(j.item, j.values, j.err); err != nil {
				return err
			}
			done.give(sample)
		}
		return nil
	})
	return g.Wait()
}
