package nccl

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"ebtrain/collective/cuda"
)

// errGone is a call on a communicator that was aborted.
var errGone = errors.New("nccl: the communicator is aborted")

// errUnsettled is a call that never came to an end.
var errUnsettled = errors.New("it is still in progress")

// communicator is an ncclComm_t. NCCL allows one call at a time, of any thread;
// mu sees to that, and is never held while anything is waited for, so that abort
// always gets through.
type communicator struct {
	api   api
	dev   *cuda.Device
	limit time.Duration // of a call that is in progress

	mu     sync.Mutex
	handle uintptr // 0 before init and after the end
	ended  bool
}

// init joins the ranks: it returns when they are, or an error is known, or quit
// is closed.
func (c *communicator) init(ranks int, id [idBytes]byte, rank int, quit <-chan struct{}) error {
	var code int
	err := c.dev.Attach(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended {
			return errGone
		}
		if c.handle, code = c.api.init(ranks, id, rank); c.handle == 0 {
			return c.error("ncclCommInitRankConfig", code)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.settle("ncclCommInitRankConfig", code, quit)
}

// call is one call of NCCL's.
func (c *communicator) call(name string, f func(comm uintptr) int) error {
	return c.calls(func(comm uintptr) (string, int) { return name, f(comm) })
}

// calls is one or several calls, and the name and the result of the last.
func (c *communicator) calls(f func(comm uintptr) (string, int)) error {
	var name string
	var code int
	err := c.dev.Attach(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.handle == 0 {
			return errGone
		}
		name, code = f(c.handle)
		return nil
	})
	if err != nil {
		return err
	}
	return c.settle(name, code, nil)
}

// settle waits until a call is no longer in progress.
func (c *communicator) settle(name string, code int, quit <-chan struct{}) error {
	const most = time.Millisecond
	began := time.Now()
	for pause := 20 * time.Microsecond; code == inProgress; pause = min(2*pause, most) {
		select {
		case <-quit:
			return errGone
		case <-time.After(pause):
		}
		if time.Since(began) > c.limit {
			return fmt.Errorf("nccl: %s: %w after %v", name, errUnsettled, c.limit)
		}
		var err error
		if code, err = c.state(); err != nil {
			return err
		}
	}
	if code != success {
		return c.failed(name, code)
	}
	return nil
}

// state is what the communicator has come to: success, in progress, or an error
// of its own threads.
func (c *communicator) state() (state int, err error) {
	return state, c.dev.Attach(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.handle == 0 {
			return errGone
		}
		var code int
		if state, code = c.api.state(c.handle); code != success {
			return c.error("ncclCommGetAsyncError", code)
		}
		return nil
	})
}

// check is an error if the communicator has come to one while nobody called.
func (c *communicator) check() error {
	state, err := c.state()
	if err != nil || state == success || state == inProgress {
		return err
	}
	return c.failed("asynchronous error", state)
}

func (c *communicator) failed(call string, code int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.error(call, code)
}

// error needs mu.
func (c *communicator) error(call string, code int) error {
	e := &Error{Call: call, Code: code, Text: c.api.text(code)}
	if c.handle != 0 {
		e.Last = c.api.last(c.handle)
	}
	return e
}

// abort ends everything that is under way and frees the communicator. It waits
// for every graph that holds one of its collectives to be destroyed: NCCL first
// tells its kernels to leave, so graphs that run come to an end meanwhile.
// Abort is safe from any goroutine, and does something once.
func (c *communicator) abort() error {
	return c.end("ncclCommAbort", c.api.abort)
}

// destroy frees a communicator that is finalized.
func (c *communicator) destroy() error {
	return c.end("ncclCommDestroy", c.api.destroy)
}

// end takes the handle away and makes the last call with it.
func (c *communicator) end(name string, f func(comm uintptr) int) error {
	c.mu.Lock()
	h := c.handle
	c.handle, c.ended = 0, true
	c.mu.Unlock()
	if h == 0 {
		return nil
	}
	return c.dev.Attach(func() error {
		if code := f(h); code != success && code != inProgress {
			return &Error{Call: name, Code: code, Text: c.api.text(code)}
		}
		return nil
	})
}
