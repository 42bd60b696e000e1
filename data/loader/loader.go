package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"ebtrain/data"
)

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("loader: closed")

// Loader is a stream of batches.
type Loader struct {
	c    Config
	src  data.Source
	fill *filler

	measured *buckets // of sentences, as they are read now

	at    spot      // of the batch that Next will return
	held  *Batch    // returned by the last Next
	ahead *Batch    // what Next will return, if Ready has waited for it
	err   error     // what every later Next returns
	own   [2]*Batch // without prefetch: the batch in hand and the one ahead

	stop  chan struct{} // closed to end the producer; nil when none runs
	ready chan made
	free  chan *Batch
	wg    sync.WaitGroup
}

// made is what the producer hands over.
type made struct {
	batch *Batch
	err   error
}

// New makes a loader at the begin of epoch 0. It does not close src.
func New(src data.Source, c Config) (*Loader, error) {
	if c.World == 0 {
		c.World = 1
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	n := src.Len()
	if n < 1 || n > math.MaxUint32 {
		return nil, fmt.Errorf("loader: %d samples, expected 1 to %d", n, uint32(math.MaxUint32))
	}
	if c.Tail == Drop && int64(c.Batch) > n {
		return nil, fmt.Errorf("loader: a batch of %d samples is never filled by the %d of the data set and would always be dropped; choose a smaller batch", c.Batch, n)
	}
	m, err := mixingOf(src, c)
	if err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	c.Quarantine = oncePerFile(c.Quarantine)
	b, err := measure(src)
	if err == nil && b != nil {
		err = b.check(c)
	}
	if err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	if b != nil && c.Quarantine != nil {
		for _, e := range b.bad {
			c.Quarantine(e)
		}
	}
	return &Loader{c: c, src: src, fill: newFiller(src, c, m, b), measured: b}, nil
}

// Bucket is how many sentences are in batches of a length.
type Bucket struct {
	Length int // tokens
	N      int64
}

// Buckets are the lengths of batches, rising; nil where samples are no sentences.
func (l *Loader) Buckets() (all []Bucket) {
	b := l.fill.buckets
	if b == nil {
		return nil
	}
	for i, edge := range b.text.Edges {
		all = append(all, Bucket{edge, b.counts[i]})
	}
	return all
}

// Len is the number of samples in an epoch.
func (l *Loader) Len() int64 { return l.src.Len() }

// Steps is the number of batches in one pass; with Carry it is rounded up.
func (l *Loader) Steps() int64 {
	n, b := l.src.Len(), int64(l.c.Batch)
	if l.fill.buckets != nil {
		return l.fill.buckets.steps(b, l.c.Tail)
	}
	if l.c.Tail == Drop {
		return n / b
	}
	return (n + b - 1) / b
}

// Next returns the next batch, io.EOF after Passes epochs, or what went wrong.
// An error is final until Restore, except the end of ctx: then Next may be
// called again and misses nothing.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if err := l.Ready(ctx); err != nil {
		return nil, err
	}
	b := l.ahead
	l.ahead = nil
	if l.held != nil && l.c.Prefetch > 0 {
		l.free <- l.held // it has room for every batch
	}
	l.held = b
	l.at = b.next
	return b, nil
}

// Ready waits until the next batch is made, and returns what Next would say of
// it. The batch that Next has returned stays valid.
func (l *Loader) Ready(ctx context.Context) error {
	switch {
	case l.err != nil:
		return l.err
	case l.ahead != nil:
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if l.c.Prefetch == 0 {
		b := l.buffer()
		if l.err = l.make(b, l.at); l.err == nil {
			l.ahead = b
		}
		return l.err
	}
	l.start()
	select {
	case m := <-l.ready:
		if l.err = m.err; l.err == nil {
			l.ahead = m.batch
		}
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// buffer is the own batch that is not in hand.
func (l *Loader) buffer() *Batch {
	i := 0
	if l.held != nil && l.held == l.own[0] {
		i = 1
	}
	if l.own[i] == nil {
		l.own[i] = l.fill.newBatch()
	}
	return l.own[i]
}

// make fills b with the batch at c, or says that the passes are over.
func (l *Loader) make(b *Batch, c spot) error {
	if l.c.Passes > 0 && c.epoch >= int64(l.c.Passes) {
		return io.EOF
	}
	if c.epoch > math.MaxUint32-2 {
		return fmt.Errorf("loader: epoch %d is over the limit of 2^32", c.epoch)
	}
	err := l.fill.fill(b, c)
	if errors.Is(err, errPassed) {
		return io.EOF
	}
	return err
}

// start begins prefetching at l.at unless it runs already.
func (l *Loader) start() {
	if l.stop != nil {
		return
	}
	l.stop = make(chan struct{})
	l.ready = make(chan made, l.c.Prefetch)
	buffers := l.c.Prefetch + 2 // one is in hand, one ahead, the rest is made meanwhile
	l.free = make(chan *Batch, buffers)
	for range buffers {
		l.free <- l.fill.newBatch()
	}
	stop, ready, free, at := l.stop, l.ready, l.free, l.at
	l.wg.Go(func() { l.produce(stop, ready, free, at) })
}

// produce makes batches from at on until stop is closed or one cannot be made.
func (l *Loader) produce(stop <-chan struct{}, ready chan<- made, free <-chan *Batch, at spot) {
	for {
		var b *Batch
		select {
		case b = <-free:
		case <-stop:
			return
		}
		err := l.make(b, at)
		next := b.next // the batch may be handed out and back before this goes on
		select {
		case ready <- made{b, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
		at = next
	}
}

// halt ends the producer and waits for it. The batch in hand stays as it is: it is
// none of the producer's any more, and without one its memory is not for the next.
func (l *Loader) halt() {
	if l.stop != nil {
		close(l.stop)
		l.wg.Wait()
	}
	l.stop, l.ready, l.free, l.ahead = nil, nil, nil, nil
	if l.c.Prefetch > 0 {
		l.held = nil
	}
}

// Close ends prefetching and waits for it. The last batch becomes invalid.
// Calling it again does nothing.
func (l *Loader) Close() error {
	l.halt()
	l.err = ErrClosed
	return nil
}
