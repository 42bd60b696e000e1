// Package staged connects ranks that compute on GPUs by the group of their
// hosts: vectors in device memory are copied to pinned memory of the host,
// reduced there, and copied back. It serves any number of ranks on a GPU, and
// machines without NCCL. Sums have the bits of package host.
//
// A [Comm] is used as that of package nccl is. Nothing of it can be captured:
// [Comm.Enqueue] waits for the stream and for the other ranks.
//
// Concurrency: see collective.Comm. Enqueue and Agree belong to the
// goroutine that calls Start; Await may be called beside it, by one goroutine.
package staged

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// Group is the group of the hosts' ranks. That of package host is one.
type Group interface {
	collective.Comm
	// Over makes the group of a Comm. See package host.
	Over(ctx context.Context, d host.Device, limit time.Duration) (*host.Comm, error)
}

// Options say how a Comm works.
type Options struct {
	// Timeout bounds the wait for a late rank. Zero means ten minutes.
	Timeout time.Duration
}

// Comm is one rank's end of a group. It implements collective.Comm.
type Comm struct {
	*host.Comm // order, agreement, tickets, failure
	dev        *cuda.Device
	stream     *cuda.Stream
	stage      *cuda.Pinned
	memory     []cuda.Ptr // from Alloc

	failed context.Context // ends when the group fails
	cancel context.CancelCauseFunc

	patience time.Duration
	once     sync.Once
	closeErr error
}

var _ collective.Comm = (*Comm)(nil)

// stageBytes is how much of a vector is on the host at a time.
const stageBytes = 4 << 20

// patience is how long Close waits for the GPU.
const patience = 10 * time.Second

// New connects the ranks of g, each with its device. All ranks call it, between
// the same two collectives of g, which is used for it. g and dev are the
// caller's, who closes them after the Comm.
func New(ctx context.Context, g collective.Comm, dev *cuda.Device, o Options) (*Comm, error) {
	group, ok := g.(Group)
	if !ok {
		return nil, fmt.Errorf("staged: the ranks are connected by a %T, expected a group of package host", g)
	}
	c := &Comm{dev: dev, patience: patience}
	c.failed, c.cancel = context.WithCancelCause(context.Background())
	over, err := group.Over(ctx, device{c}, cmp.Or(o.Timeout, 10*time.Minute))
	if err != nil {
		return nil, fmt.Errorf("staged: %w", err)
	}
	c.Comm = over
	go c.watch()
	if c.stage, err = dev.AllocPinned(stageBytes); err == nil {
		c.stream, err = dev.NewStream("staging", -1)
	}
	if err != nil {
		c.Abort(err)
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// watch ends waits for the device when the group fails, or c is closed.
func (c *Comm) watch() {
	select {
	case <-c.Failed():
		c.cancel(c.Failure())
	case <-c.failed.Done():
	}
}

// Close releases everything. See collective.Comm. A GPU that does not come to the end of what
// is queued is waited for ten seconds; then that is the error, and what is on the GPU, and the
// device's context, are kept until it does or the process ends.
func (c *Comm) Close() error {
	c.once.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Comm) close() error {
	done := c.dev.Keep() // its owner may close it before the GPU is over
	over := make(chan error, 1)
	go func() {
		err := c.Comm.Close()
		c.cancel(collective.ErrClosed)
		over <- errors.Join(err, c.release(), done())
	}()
	select {
	case err := <-over:
		return err
	case <-time.After(c.patience):
		return fmt.Errorf("staged: the GPU has not come to the end of what is queued for collectives within %v: it hangs, and what the group holds on it is lost until the process ends", c.patience)
	}
}

// release frees what is on the device, once that is over; one that is lost has said so.
func (c *Comm) release() error {
	var errs []error
	if c.stream != nil {
		if !c.dev.Lost() {
			errs = append(errs, c.stream.Sync(context.Background()))
		}
		errs = append(errs, c.stream.Close())
	}
	if c.stage != nil {
		errs = append(errs, c.stage.Free())
	}
	for _, p := range c.memory {
		errs = append(errs, c.dev.Free(p))
	}
	return errors.Join(errs...)
}
