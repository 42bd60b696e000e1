// Package importer reads data sets as their authors publish them and writes
// them as shards: MNIST (idx.gz), CIFAR-10 (binary records or WebDataset tar),
// CelebA (zip or folder), any WebDataset tar, any tree of pictures, and any
// data.Source.
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

	"golang.org/x/sync/errgroup"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// Item is one original, not yet decoded.
type Item struct {
	Name  string // file, and record or entry, for messages
	Label int64
	// Pixels decodes it: (C, H, W) of the set's schema. It is called once, from
	// any goroutine.
	Pixels func() ([]byte, error)
}

// Split is one part of a Set.
type Split struct {
	Name  string
	Count int64 // items, −1 if not known before the end
	// Items in order. An error ends the import whatever is to be skipped.
	Items iter.Seq2[Item, error]
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
	err := o.decode(ctx, p.Items, func(it Item, pixels []byte, err error) error {
		done++
		if o.Progress != nil {
			o.Progress(p.Name, done, total)
		}
		if want := w.Schema().SampleBytes(); err == nil && len(pixels) != want {
			err = fmt.Errorf("%d bytes of pixels, expected %d for %v as in the first picture; give --size to make all alike", len(pixels), want, w.Schema())
		}
		if err != nil {
			return o.bad(w, p.Name, it.Name, err)
		}
		added++
		return w.Add(ctx, p.Name, pixels, it.Label)
	})
	if err == nil && added == 0 {
		err = fmt.Errorf("split %s: no pictures left of %d", p.Name, done)
	}
	return err
}

// bad stops the import or counts the picture as skipped.
func (o *Options) bad(w *shard.Writer, split, name string, err error) error {
	if !o.SkipBad {
		return fmt.Errorf("%s: %w; repair it, or leave such pictures out with --on-bad skip", name, err)
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
	pixels []byte
	err    error
	done   chan struct{}
	fatal  error // the items ended with it
}

// decode decodes items on o.Workers goroutines and gives them to each in their
// own order, from one goroutine.
func (o *Options) decode(ctx context.Context, items iter.Seq2[Item, error], each func(Item, []byte, error) error) error {
	g, ctx := errgroup.WithContext(ctx)
	queue := make(chan *job, 8*o.Workers) // in order
	work := make(chan *job)
	g.Go(func() error {
		defer close(queue)
		defer close(work)
		var n int64
		for it, err := range items {
			j := &job{item: it, done: make(chan struct{}), fatal: err}
			for _, c := range []chan<- *job{queue, work} {
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
			for j := range work {
				if j.fatal == nil {
					j.pixels, j.err = j.item.Pixels()
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
				return context.Cause(ctx)
			}
			if j.fatal != nil { // reported in its turn, so always the same error is first
				return j.fatal
			}
			if err := each(j.item, j.pixels, j.err); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}
