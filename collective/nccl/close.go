package nccl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebtrain/collective"
)

// patience is how long Close waits for the other ranks, and then for NCCL.
const patience = 10 * time.Second

// watch ends NCCL when the group fails, and the group when NCCL does. It is the
// one who aborts, on a goroutine of its own: an abort waits for graphs, which
// others destroy meanwhile. Of several communicators of a process each has its
// watch, so all are told to leave before any is waited for.
func (c *Comm) watch() {
	defer close(c.watched)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.Failed():
			c.abortErr = c.nccl.abort()
			return
		case <-c.closing:
			return
		case <-tick.C:
			if err := c.nccl.check(); err != nil && !errors.Is(err, errGone) {
				c.Comm.Abort(err)
			}
		}
	}
}

// Close releases everything. Graphs that hold collectives are closed before. In
// good order all ranks close: NCCL's memory may be read by others until they are
// through, so Close waits for them, for ten seconds at most; a rank that starts
// something else meanwhile ends the group. See collective.Comm.
func (c *Comm) Close() error {
	c.once.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Comm) close() error {
	if c.Failure() == nil && c.Idle() {
		c.farewell()
	}
	err := c.Comm.Close()
	if c.Failure() == nil {
		close(c.closing)
		<-c.watched
		err = errors.Join(err, c.part())
	} else {
		select {
		case <-c.watched:
			err = errors.Join(err, c.abortErr)
		case <-time.After(patience):
			return errors.Join(err, fmt.Errorf("nccl: the abort has not ended after %v: a graph that holds a collective is not closed, or the GPU hangs; what it holds is lost until the process ends", patience))
		}
	}
	return errors.Join(err, c.release())
}

// farewell is the last barrier: after it nobody needs this rank's memory. How it
// ends is in Failure.
func (c *Comm) farewell() {
	ctx, stop := within(context.Background(), c, patience, "close")
	defer stop()
	_ = collective.Do(ctx, c.Comm, collective.Request{Kind: collective.Barrier, Label: "close"})
}

// part ends the communicator together with the other ranks; by an abort, if they
// do not come.
func (c *Comm) part() error {
	err := c.memory.deregisterAll()
	c.nccl.limit = patience
	if err == nil {
		err = c.nccl.call("ncclCommFinalize", c.nccl.api.finalize)
	}
	last := c.nccl.destroy
	if err != nil {
		last = c.nccl.abort
	}
	ended := make(chan error, 1)
	go func() { ended <- last() }()
	select {
	case lastErr := <-ended:
		return errors.Join(err, lastErr)
	case <-time.After(patience):
		return errors.Join(err, fmt.Errorf("nccl: the communicator has not ended after %v: a graph that holds a collective is not closed", patience))
	}
}

// release frees what is on the device.
func (c *Comm) release() error {
	errs := []error{c.memory.free(), c.mover.free(), c.mover.kernels.close()}
	if c.progress.word != nil {
		errs = append(errs, c.progress.word.Free())
	}
	if c.over != nil {
		errs = append(errs, c.over.Close())
	}
	if c.stream != nil {
		errs = append(errs, c.stream.Close())
	}
	return errors.Join(errs...)
}
