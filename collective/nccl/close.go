package nccl

import (
	"errors"
	"fmt"
	"time"
)

const (
	linger   = 2 * time.Second  // of a rank that closes, for what it has begun, and for its graphs to be closed
	without  = 3 * time.Second  // in a collective, when a rank has closed: longer than it lingers
	patience = 10 * time.Second // of Close, with NCCL and the other ranks, to end when it is told
)

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
			c.look()
		}
	}
}

// look ends the group if NCCL has come to an error by itself. What a rank that
// has closed in good order leaves behind is none.
func (c *Comm) look() {
	c.looking.Lock()
	defer c.looking.Unlock()
	if c.leaving {
		return
	}
	if err := c.nccl.check(); err != nil && !errors.Is(err, errGone) && c.Deserter() < 0 {
		c.Comm.Abort(err)
	}
}

func (c *Comm) leave() {
	c.looking.Lock()
	defer c.looking.Unlock()
	c.leaving = true
}

// Close releases everything. Graphs that hold collectives are closed before. See
// collective.Comm; but as long as others of this host do not close, too, it waits, for
// ten seconds: they may still read memory of NCCL's on this rank. After that, which is
// logged and no error, NCCL keeps its memory, and the device's context, until they do
// or the process ends.
func (c *Comm) Close() error {
	c.once.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Comm) close() error {
	c.leave()
	closed := make(chan error, 1)
	go func() { closed <- c.Comm.Close() }() // waits for what is started, which the device may keep
	select {
	case err := <-closed:
		if c.Failure() == nil {
			close(c.closing)
			<-c.watched
			return errors.Join(err, c.part())
		}
		closed <- err
	case <-c.Failed():
	}
	aborted := func() error {
		err := <-closed
		<-c.watched
		return errors.Join(err, c.abortErr)
	}
	late, err := c.end(aborted)
	if late {
		err = fmt.Errorf("nccl: the abort has not ended after %v: a graph that holds a collective is not closed, or the GPU hangs; what it holds is lost until the process ends", c.patience)
	}
	return err
}

// part ends the communicator in good order, and releases all. Finalizing waits for graphs
// of this rank, and destroying, which joins NCCL's thread that serves this host's ranks,
// for them (commDestroySync in src/init.cc, ncclProxyService in src/proxy.cc).
func (c *Comm) part() error {
	err := c.memory.deregisterAll()
	c.nccl.limit = linger
	last, final := c.nccl.destroy, true
	if c.nccl.call("ncclCommFinalize", c.nccl.api.finalize) != nil {
		last, final = c.nccl.abort, false
	}
	late, endErr := c.end(last)
	switch {
	case late && final:
		c.memory.log.Info("a rank of this host has not closed its communicator: NCCL keeps its memory until the process ends", "waited", c.patience)
	case late:
		endErr = fmt.Errorf("nccl: the communicator has not ended after %v: a graph that holds a collective is not closed; what it holds is lost until the process ends", c.patience)
	}
	return errors.Join(err, endErr)
}

// end waits until last has ended NCCL, and frees what is on the device. What comes late
// goes on behind Close, in a context that is kept for it: its owner may close the device.
func (c *Comm) end(last func() error) (late bool, err error) {
	done := c.dev.Keep()
	over := make(chan error, 1)
	go func() { over <- errors.Join(last(), c.release(), done()) }()
	select {
	case err := <-over:
		return false, err
	case <-time.After(c.patience):
		return true, nil
	}
}

// release frees what is on the device.
func (c *Comm) release() error {
	errs := []error{c.memory.free(), c.started.free(c.dev), c.enqueued.free(c.dev), c.mover.kernels.close()}
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
