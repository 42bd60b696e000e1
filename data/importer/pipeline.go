package importer

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
)

// job is an item on its way through the workers.
type job struct {
	item   Item
	values []byte
	err    error // of this item alone
	done   chan struct{}
	fatal  error // the items ended with it
}

// pipeline decodes items on several goroutines and hands them on in their own order:
// feed → todo → the workers, and feed → queue → deliver.
type pipeline struct {
	limit   int64   // items at most; 0 means all
	sample  int64   // bytes of a decoded item
	work    *budget // of items before and while they are decoded
	waiting *budget // of decoded items that wait for their turn
	queue   chan *job
	todo    chan *job
}

// decode decodes items on o.Workers goroutines and gives them to each in their
// own order, from one goroutine. What is in work at any time takes no more than
// o.memory: a quarter, at most, is for samples, of as many bytes as sample, that wait
// for their turn.
func (o *Options) decode(ctx context.Context, items originals, sample int64, each func(Item, []byte, error) error) error {
	ahead := 8 * o.Workers // items that may wait for their turn
	memory := cmp.Or(o.memory, MemoryLimit)
	waiting := max(sample, min(memory/4, int64(ahead)*sample))
	p := &pipeline{
		limit: o.Limit, sample: sample,
		work: newBudget(memory - waiting), waiting: newBudget(waiting),
		queue: make(chan *job, ahead), todo: make(chan *job),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.feed(ctx, items) })
	for range o.Workers {
		g.Go(func() error { p.decode(ctx); return nil })
	}
	g.Go(func() error { return p.deliver(ctx, each) })
	return g.Wait()
}

// feed puts the items into the queue and before the workers, until they end.
func (p *pipeline) feed(ctx context.Context, items originals) error {
	defer close(p.queue)
	defer close(p.todo)
	var n int64
	for it, err := range items(ctx, p.work) {
		if err := p.waiting.take(ctx, p.sample); err != nil { // in order, so the first in turn has what it needs
			return err
		}
		j := &job{item: it, done: make(chan struct{}), fatal: err}
		for _, c := range []chan<- *job{p.queue, p.todo} {
			select {
			case c <- j:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if n++; err != nil || n == p.limit {
			return nil
		}
	}
	return nil
}

// decode is one worker.
func (p *pipeline) decode(ctx context.Context) {
	for j := range p.todo {
		if j.fatal == nil {
			j.values, j.err = j.item.Values(ctx, p.work)
		}
		close(j.done)
	}
}

// deliver gives each the decoded items, in the order of the queue.
func (p *pipeline) deliver(ctx context.Context, each func(Item, []byte, error) error) error {
	for j := range p.queue {
		select {
		case <-j.done:
		case <-ctx.Done(): // feed may have ended between the two channels
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
		p.waiting.give(p.sample)
	}
	return nil
}
