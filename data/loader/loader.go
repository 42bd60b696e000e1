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

	at    cursor // of the batch that Next will return
	held  *Batch // returned by the last Next
	err   error  // what every later Next returns
	spare *Batch // the one batch without prefetch

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
	return &Loader{c: c, src: src, fill: newFiller(src, c)}, nil
}

// Len is the number of samples in an epoch.
func (l *Loader) Len() int64 { return l.src.Len() }

// Steps is the number of batches in one pass; with Carry it is rounded up.
func (l *Loader) Steps() int64 {
	n, b := l.src.Len(), int64(l.c.Batch)
	if l.c.Tail == Drop {
		return n / b
	}
	return (n + b - 1) / b
}

// Next returns the next batch, io.EOF after Passes epochs, or what went wrong.
// An error is final until Restore, except the end of ctx: then Next may be
// called again and misses nothing.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if l.err != nil {
		return nil, l.err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	b, err := l.next(ctx)
	if err != nil {
		return nil, err
	}
	l.held = b
	l.at = l.at.after(int64(l.c.Batch), l.src.Len(), l.c.Tail)
	return b, nil
}

func (l *Loader) next(ctx context.Context) (*Batch, error) {
	if l.c.Prefetch == 0 {
		if l.spare == nil {
			l.spare = l.fill.newBatch()
		}
		l.err = l.make(l.spare, l.at)
		return l.spare, l.err
	}
	l.start()
	if l.held != nil {
		l.free <- l.held // it has room for every batch
		l.held = nil
	}
	select {
	case m := <-l.ready:
		l.err = m.err
		return m.batch, m.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// make fills b with the batch at c, or says that the passes are over.
func (l *Loader) make(b *Batch, c cursor) error {
	if l.c.Passes > 0 && c.epoch >= int64(l.c.Passes) {
		return io.EOF
	}
	if c.epoch > math.MaxUint32-2 {
		return fmt.Errorf("loader: epoch %d is over the limit of 2^32", c.epoch)
	}
	return l.fill.fill(b, c)
}

// start begins prefetching at l.at unless it runs already.
func (l *Loader) start() {
	if l.stop != nil {
		return
	}
	l.stop = make(chan struct{})
	l.ready = make(chan made, l.c.Prefetch)
	l.free = make(chan *Batch, l.c.Prefetch+1)
	for range l.c.Prefetch + 1 {
		l.free <- l.fill.newBatch()
	}
	stop, ready, free, at := l.stop, l.ready, l.free, l.at
	l.wg.Go(func() { l.produce(stop, ready, free, at) })
}

// produce makes batches from at on until stop is closed or one cannot be made.
func (l *Loader) produce(stop <-chan struct{}, ready chan<- made, free <-chan *Batch, at cursor) {
	for {
		var b *Batch
		select {
		case b = <-free:
		case <-stop:
			return
		}
		err := l.make(b, at)
		select {
		case ready <- made{b, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
		at = at.after(int64(l.c.Batch), l.src.Len(), l.c.Tail)
	}
}

// halt ends the producer and waits for it.
func (l *Loader) halt() {
	if l.stop != nil {
		close(l.stop)
		l.wg.Wait()
	}
	l.stop, l.ready, l.free, l.held = nil, nil, nil, nil
}

// Close ends prefetching and waits for it. The last batch becomes invalid.
// Calling it again does nothing.
func (l *Loader) Close() error {
	l.halt()
	l.err = ErrClosed
	return nil
}
