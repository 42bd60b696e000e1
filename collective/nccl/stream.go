package nccl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

const (
	progressBytes = 64
	past          = 1 << 31
)

// progress names the collectives that go past the queue. The stream writes the
// number of each into word when it comes to it, and again, with past, behind the last of
// a program: between two of them a rank that has closed is missed anyway.
type progress struct {
	word *cuda.Pinned

	mu      sync.Mutex
	numbers map[collective.Request]uint32
	list    []collective.Request // by number, from 1
	last    map[uint32]bool      // of some program
}

// number is that of a request that was agreed on, else 0.
func (p *progress) number(req collective.Request) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.numbers[req]
}

// add numbers a request; last says that it is the last of its program.
func (p *progress) add(req collective.Request, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.numbers[req] == 0 {
		p.list = append(p.list, req)
		p.numbers[req] = uint32(len(p.list))
	}
	if last {
		p.last[p.numbers[req]] = true
	}
}

// ends says whether a program's collectives end with that number.
func (p *progress) ends(n uint32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[n]
}

// mark is what the device has written last.
func (p *progress) mark() uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(p.word.Bytes()))))
}

// request is that of a mark, if there is one.
func (p *progress) request(mark uint32) (req collective.Request, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int(mark &^ past)
	if n == 0 || n > len(p.list) {
		return collective.Request{}, false
	}
	return p.list[n-1], true
}

// place says for people where the device is.
func (p *progress) place(mark uint32) string {
	req, ok := p.request(mark)
	switch {
	case !ok:
		return "what comes before its first collective"
	case mark&past != 0:
		return "what comes behind " + what(req)
	}
	return what(req)
}

// Agree compares the collectives that a program will enqueue, in their order, on
// all ranks, and makes what they need. It is a collective itself. What it was
// given may be enqueued from then on, as often as the program runs. A difference
// is an ErrMismatch on every rank, and the end of the group.
func (c *Comm) Agree(ctx context.Context, reqs []collective.Request) error {
	for _, req := range reqs {
		err := req.Check(c.Size())
		if err == nil && req.Kind == collective.Barrier {
			err = fmt.Errorf("%w: a barrier moves no data, and no stream can wait in it", collective.ErrInvalid)
		}
		if err != nil {
			c.Abort(fmt.Errorf("%s: %w", what(req), err))
			return err
		}
	}
	return c.Within(ctx, "agree on a program's collectives", func(in *host.Inside) error {
		lines := make([]string, len(reqs))
		for i, req := range reqs {
			lines[i] = c.line(req)
		}
		if err := in.Agree("collective", lines); err != nil {
			return err
		}
		var err error
		for i, req := range reqs {
			if err = c.mover.need(req, &c.enqueued); err != nil {
				break
			}
			c.progress.add(req, i == len(reqs)-1)
		}
		return agree(in, "memory for collectives", err)
	})
}

// line is what ranks compare of a request.
func (c *Comm) line(req collective.Request) string {
	s := req.String()
	if at := c.memory.place(req.Vec); at != elsewhere {
		s += fmt.Sprintf(" at byte %d of allocation %d", at.offset, at.slab)
	}
	return s + fmt.Sprintf(" %q", req.Label)
}

// Enqueue puts req behind what is queued on s, and returns. Agree has been given
// it before. What was started before is over first. All ranks enqueue the same,
// in the same order relative to Start and Agree, on streams whose order is that
// of the calls; s may be being captured, on all ranks alike, and then every
// launch of the graph is the collective again. A program runs once before it is
// captured: NCCL makes connections and loads kernels when they are first needed,
// and neither can be done in a capture. The error is this rank's alone,
// who must then abort the group. The vector belongs to the collective until s
// has come past it.
func (c *Comm) Enqueue(s *cuda.Stream, req collective.Request) error {
	n := c.progress.number(req)
	if n == 0 {
		return fmt.Errorf("%w: %s is enqueued, and Agree was not given it", collective.ErrInvalid, what(req))
	}
	if err := c.Failure(); err != nil {
		return err
	}
	if err := c.Drain(context.Background()); err != nil {
		return err
	}
	begun := c.Recorder().Enqueue(uint64(n), req)
	err := c.enqueue(s, n, req)
	c.Recorder().End(begun, err)
	if err != nil {
		if f := c.Failure(); errors.Is(err, errGone) && f != nil {
			err = f
		}
		return fmt.Errorf("%s: %w", what(req), err)
	}
	return nil
}

func (c *Comm) enqueue(s *cuda.Stream, n uint32, req collective.Request) error {
	if err := s.Memset32(c.progress.word.Ptr(), n, 1); err != nil {
		return err
	}
	if err := c.mover.enqueue(s, req, &c.enqueued); err != nil || !c.progress.ends(n) {
		return err
	}
	return s.Memset32(c.progress.word.Ptr(), n|past, 1)
}

// Capturable says that Enqueue serves in a capture.
func (c *Comm) Capturable() bool { return true }

// Meets says, the same on all ranks, whether ranks may wait for each other in NCCL while they
// capture, as NVLS has them register a graph's memory together: who begins a capture that
// others do not make would wait until Options.Timeout is over.
func (c *Comm) Meets() bool { return c.nvls && c.Size() > 1 }

// Progress is where the device writes, as four bytes, the number of the enqueued
// collective that it has come to, with the highest bit set once it is past it, if it is a
// program's last; UnderWay names it. 0 is none.
func (c *Comm) Progress() cuda.Ptr { return c.progress.word.Ptr() }

// UnderWay is the enqueued collective that the device came to last.
func (c *Comm) UnderWay() (req collective.Request, ok bool) {
	return c.progress.request(c.progress.mark())
}

// Await waits for an event behind enqueued collectives, as it must be waited for
// where they may never end: until the group fails, which is the error then, or
// ctx ends, which ends the group. Of all collectives, none may keep the device
// longer than Options.Timeout: else the other ranks are asked where they are,
// and the group ends. It ends soon where the device is in a collective and a rank has
// closed.
func (c *Comm) Await(ctx context.Context, e *cuda.Event) error {
	stop := context.AfterFunc(ctx, func() { c.Abort(context.Cause(ctx)) })
	defer stop()
	return c.guard(ctx, newStay(c), func(limit time.Duration) error { return c.await(e, limit) })
}

// Queueing is f, which puts collectives and other work onto streams. Behind a collective that
// never ends the driver's queue may be full, and then its calls do not return; so the caller
// could not come to Await. Meanwhile the device is held to what Await holds it to while it is
// in a collective; the end of the group ends that, and the calls return.
func (c *Comm) Queueing(f func() error) error {
	queued, watched := make(chan struct{}), make(chan struct{})
	here := newStay(c)
	here.computes = true
	go func() {
		defer close(watched)
		_ = c.guard(context.Background(), here, func(limit time.Duration) error { //nolint:errcheck // f fails with the group
			select {
			case <-queued:
				return nil
			case <-c.Failed():
				return c.Failure()
			case <-time.After(limit):
				return errLate
			}
		})
	}()
	err := f()
	close(queued)
	<-watched
	return err
}

// guard waits for what wait does, which is errLate where that has not come within a limit, as
// long as the device is not too long where it is.
func (c *Comm) guard(ctx context.Context, here stay, wait func(limit time.Duration) error) error {
	for {
		left := c.options.Timeout - time.Since(here.since)
		err := wait(min(left, c.options.Timeout/8, without/8))
		if !errors.Is(err, errLate) {
			return err
		}
		deserter := here.look(c)
		switch {
		case time.Since(here.whole) >= without:
			c.Miss(deserter, fmt.Errorf("%s has waited for it for %v", c.progress.place(here.mark), without))
			return wait(c.options.Timeout) // until NCCL's kernels have let go
		case time.Since(here.since) >= c.options.Timeout:
			return c.rollCall(ctx, c.progress.place(here.mark))
		}
	}
}

// stay is how long the device has been where it is.
type stay struct {
	mark  uint32
	since time.Time
	whole time.Time // the last at which no rank had closed, or the device was in no collective
	// computes says that the device may be in no collective for as long as it likes.
	computes bool
}

func newStay(c *Comm) stay {
	now := time.Now()
	return stay{mark: c.progress.mark(), since: now, whole: now}
}

// look brings s up to date, and is a rank that has closed, or -1.
func (s *stay) look(c *Comm) (deserter int) {
	now, mark := time.Now(), c.progress.mark()
	moved, outside := mark != s.mark, mark == 0 || mark&past != 0
	if moved || outside && s.computes {
		s.mark, s.since = mark, now
	}
	deserter = c.Deserter()
	if deserter < 0 || moved || outside {
		s.whole = now
	}
	return deserter
}

// rollCall ends the group because of where the device is, and says who is to blame, if that
// can be known.
func (c *Comm) rollCall(ctx context.Context, place string) error {
	call := rollCallFor(place)
	ctx, stop := within(ctx, c, muster, call)
	defer stop()
	err := c.CallRoll(ctx, call)
	if err == nil {
		c.Abort(fmt.Errorf("the device is still at %s after %v, and all ranks are alive: the GPUs or the links between them hang (NCCL_DEBUG=INFO says more)", place, c.options.Timeout))
	}
	<-c.Failed()
	return c.Failure()
}
