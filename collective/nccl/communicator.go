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

// errStuck is a call that does not return.
var errStuck = errors.New("has not returned")

// errUnsettled is a call that never came to an end.
var errUnsettled = errors.New("it is still in progress")

// launchesItself is the first NCCL whose calls launch on a thread of its own where a
// communicator does not block. Older ones launch in the call, which does not return as long
// as the driver's queue is full: for ever behind a collective that hangs.
const launchesItself = 22300

// communicator is an ncclComm_t. NCCL allows one call at a time, of any thread, and
// none beside an abort; mu sees to that. Calls return soon, and what they begin is waited
// for without mu, so that abort gets through; but see launchesItself.
type communicator struct {
	api     api
	version int
	dev     *cuda.Device
	limit   time.Duration   // of a call that is in progress
	failed  <-chan struct{} // closed when the group fails

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

// call is one call of NCCL's that launches nothing.
func (c *communicator) call(name string, f func(comm uintptr) int) error {
	r := c.locked(func(comm uintptr) (string, int) { return name, f(comm) })
	return c.conclude(r)
}

// launch is calls of NCCL's that put an operation into s.
func (c *communicator) launch(s *cuda.Stream, f func(comm uintptr) (string, int)) error {
	if c.version >= launchesItself {
		return c.conclude(c.locked(f))
	}
	if on, err := s.Capturing(); err != nil || on { // nothing is launched
		return errors.Join(err, c.conclude(c.locked(f)))
	}
	return c.aside(f)
}

// outcome is what calls have come to: the name and the result of the last, or why none was
// made.
type outcome struct {
	name string
	code int
	err  error
}

// locked makes calls while nobody else does.
func (c *communicator) locked(f func(comm uintptr) (string, int)) (r outcome) {
	r.err = c.dev.Attach(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.handle == 0 {
			return errGone
		}
		r.name, r.code = f(c.handle)
		return nil
	})
	return r
}

func (c *communicator) conclude(r outcome) error {
	if r.err != nil {
		return r.err
	}
	return c.settle(r.name, r.code, nil)
}

// aside makes calls that may not return. Beside them no abort is allowed: the caller gives
// up a little after the group, or past the limit, and the process has to end.
func (c *communicator) aside(f func(comm uintptr) (string, int)) error {
	const grace = 200 * time.Millisecond
	made := make(chan outcome, 1)
	go func() { made <- c.locked(f) }()
	limit := time.After(c.limit)
	select {
	case r := <-made:
		return c.conclude(r)
	case <-c.failed:
		limit = time.After(grace)
	case <-limit:
		return fmt.Errorf("nccl: a call %w after %v: the launch queue of the GPU is full", errStuck, c.limit)
	}
	select {
	case r := <-made:
		return c.conclude(r)
	case <-limit:
		return errGone
	}
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
		return c.failure(name, code)
	}
	return nil
}

// state is what the communicator has come to: success, in progress, or an error
// of its own threads.
func (c *communicator) state() (state int, err error) {
	err = c.dev.Attach(func() (err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		state, err = c.ask()
		return err
	})
	return state, err
}

// ask needs mu.
func (c *communicator) ask() (int, error) {
	if c.handle == 0 {
		return 0, errGone
	}
	state, code := c.api.state(c.handle)
	if code != success {
		return 0, c.error("ncclCommGetAsyncError", code)
	}
	return state, nil
}

// check is an error if the communicator has come to one while nobody called. It does not
// wait for who calls, and hears of it himself.
func (c *communicator) check() error {
	state := success
	err := c.dev.Attach(func() (err error) {
		if !c.mu.TryLock() {
			return nil
		}
		defer c.mu.Unlock()
		state, err = c.ask()
		return err
	})
	if err != nil || state == success || state == inProgress {
		return err
	}
	return c.failure("asynchronous error", state)
}

func (c *communicator) failure(call string, code int) error {
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

// end takes the handle away and makes the last call with it. Of a device that is lost it
// fails, which says nothing.
func (c *communicator) end(name string, f func(comm uintptr) int) error {
	c.mu.Lock()
	h := c.handle
	c.handle, c.ended = 0, true
	c.mu.Unlock()
	if h == 0 {
		return nil
	}
	return c.dev.Attach(func() error {
		if code := f(h); code != success && code != inProgress && !c.dev.Lost() {
			return &Error{Call: name, Code: code, Text: c.api.text(code)}
		}
		return nil
	})
}
