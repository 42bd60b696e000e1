package colltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
)

// mismatch lets one rank differ in one thing: every rank is told.
func (f Factory) mismatch(t *testing.T) {
	base := func(v vector) collective.Request {
		return collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: v.vec, Label: "base"}
	}
	for _, test := range []struct {
		name   string
		change func(r *collective.Request)
	}{
		{"length", func(r *collective.Request) { r.Vec.Len /= 2 }},
		{"empty", func(r *collective.Request) { r.Vec.Len = 0 }},
		{"dtype", func(r *collective.Request) { r.Vec.Type = collective.I32 }},
		{"dtype_size", func(r *collective.Request) { r.Vec.Type = collective.BF16 }},
		{"op", func(r *collective.Request) { r.Op = collective.Max }},
		{"kind_barrier", func(r *collective.Request) { *r = collective.Request{Kind: collective.Barrier, Label: "other"} }},
		{"kind_broadcast", func(r *collective.Request) { r.Kind = collective.Broadcast }},
		{"kind_gather", func(r *collective.Request) { r.Kind = collective.AllGather }},
	} {
		for _, length := range []int{840, 840 * 1000} { // small, and more than a stage
			for _, n := range []int{3, 2, 5} {
				if n != 3 && f.brief() {
					continue
				}
				t.Run(fmt.Sprintf("%s/len=%d/ranks=%d", test.name, length, n), func(t *testing.T) {
					f.differ(t, f.pair(t, n), length, base, test.change)
				})
			}
		}
	}
	t.Run("root", func(t *testing.T) {
		f.differ(t, f.pair(t, 3), 100, func(v vector) collective.Request {
			return collective.Request{Kind: collective.Broadcast, Vec: v.vec, Root: 0}
		}, func(r *collective.Request) { r.Root = 1 })
	})
	t.Run("order", f.order)
}

// differ starts base on all ranks, changed on the last.
func (f Factory) differ(t *testing.T, n, length int, base func(vector) collective.Request, change func(*collective.Request)) {
	comms := f.group(t, n)
	errs := each(comms, func(c collective.Comm) error {
		b, err := f.Memory(c, vectorBytes(collective.F32, length))
		if err != nil {
			return err
		}
		req := base(newVector(b, collective.F32, make([]float64, length)))
		if c.Rank() == n-1 {
			change(&req)
		}
		return do(c, req)
	})
	errs.are(t, collective.ErrMismatch)
	errs.report(t)
	each(comms, func(c collective.Comm) error {
		return do(c, collective.Request{Kind: collective.Barrier})
	}).are(t, collective.ErrMismatch, collective.ErrAborted)
}

// order swaps two different collectives on one rank.
func (f Factory) order(t *testing.T) {
	n := f.pair(t, 4)
	comms := f.group(t, n)
	each(comms, func(c collective.Comm) error {
		var reqs [2]collective.Request
		for i, length := range []int{10, 20} {
			req, err := f.sum(c, length)
			if err != nil {
				return err
			}
			reqs[i] = req
		}
		if c.Rank() == 1 {
			reqs[0], reqs[1] = reqs[1], reqs[0]
		}
		first, second := c.Start(reqs[0]), c.Start(reqs[1])
		err := wait(first)
		if err2 := wait(second); !errors.Is(err2, collective.ErrAborted) && !errors.Is(err2, collective.ErrMismatch) {
			t.Errorf("rank %d: the second collective ended with %v, want an abort", c.Rank(), err2)
		}
		return err
	}).are(t, collective.ErrMismatch)
}

func (f Factory) mismatchAlloc(t *testing.T) {
	n := f.pair(t, 3)
	t.Run("size", func(t *testing.T) {
		errs := each(f.group(t, n), func(c collective.Comm) error {
			_, err := c.Alloc(4096 + c.Rank()/(n-1))
			return err
		})
		errs.are(t, collective.ErrMismatch)
		errs.report(t)
	})
	t.Run("order", func(t *testing.T) {
		each(f.group(t, n), func(c collective.Comm) error {
			if c.Rank() == 0 {
				return do(c, collective.Request{Kind: collective.Barrier})
			}
			_, err := c.Alloc(100)
			return err
		}).are(t, collective.ErrMismatch)
	})
}

// invalid lets one rank start what is malformed: it is told, the others are
// not left waiting.
func (f Factory) invalid(t *testing.T) {
	x := make([]float32, 12)
	vec := collective.VecOf(x)
	sum := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec}
	for _, test := range []struct {
		name   string
		change func(r *collective.Request)
	}{
		{"kind", func(r *collective.Request) { r.Kind = 0 }},
		{"kind_high", func(r *collective.Request) { r.Kind = 77 }},
		{"kind_alloc", func(r *collective.Request) { r.Kind = collective.Allocation }},
		{"op", func(r *collective.Request) { r.Op = 0 }},
		{"op_high", func(r *collective.Request) { r.Op = 9 }},
		{"dtype", func(r *collective.Request) { r.Vec.Type = 0 }},
		{"length", func(r *collective.Request) { r.Vec.Len = -1 }},
		{"pointer", func(r *collective.Request) { r.Vec.Ptr = nil }},
		{"mean_of_int", func(r *collective.Request) { r.Op, r.Vec.Type = collective.Mean, collective.I32 }},
		{"root", func(r *collective.Request) { r.Kind, r.Root = collective.Broadcast, 2 }},
		{"root_negative", func(r *collective.Request) { r.Kind, r.Root = collective.Broadcast, -1 }},
		{"scatter_odd", func(r *collective.Request) { r.Kind, r.Vec.Len = collective.ReduceScatter, 11 }},
		{"gather_odd", func(r *collective.Request) { r.Kind, r.Vec.Len = collective.AllGather, 11 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := sum
			test.change(&bad)
			errs := each(f.group(t, f.pair(t, 2)), func(c collective.Comm) error {
				if c.Rank() == 1 {
					return do(c, bad)
				}
				good, err := f.sum(c, 12)
				if err != nil {
					return err
				}
				return do(c, good)
			})
			errs[1:].are(t, collective.ErrInvalid)
			errs[:1].are(t, collective.ErrAborted, collective.ErrInvalid, collective.ErrMismatch)
		})
	}
}

var errCause = errors.New("the cause")

// abort ends the group from one rank while the others are blocked.
func (f Factory) abort(t *testing.T) {
	for _, n := range []int{3, 2, 8} {
		if n != 3 && f.brief() {
			continue
		}
		n := f.pair(t, n)
		for _, pause := range []time.Duration{0, 20 * time.Millisecond} { // others spin, others sleep
			for _, length := range []int{10, 1 << 20} {
				t.Run(fmt.Sprintf("ranks=%d/pause=%v/len=%d", n, pause, length), func(t *testing.T) {
					errs := each(f.group(t, n), func(c collective.Comm) error {
						if c.Rank() == n-1 {
							time.Sleep(pause)
							c.Abort(errCause)
							c.Abort(errors.New("another cause"))
							return do(c, collective.Request{Kind: collective.Barrier})
						}
						req, err := f.sum(c, length)
						if err != nil {
							return err
						}
						return do(c, req)
					})
					errs.are(t, collective.ErrAborted)
					errs[n-1:].are(t, errCause)
				})
			}
		}
	}
}

// abortIdle aborts while nothing runs: what is started later fails.
func (f Factory) abortIdle(t *testing.T) {
	comms := f.group(t, f.pair(t, 3))
	comms[1].Abort(errCause)
	each(comms, func(c collective.Comm) error {
		if _, err := c.Alloc(100); !errors.Is(err, collective.ErrAborted) {
			return fmt.Errorf("alloc: %w", err)
		}
		return do(c, collective.Request{Kind: collective.Barrier})
	}).are(t, collective.ErrAborted)
}

// cancel ends the context of a Wait: the whole group ends.
func (f Factory) cancel(t *testing.T) {
	n := f.pair(t, 3)
	comms := f.group(t, n)
	// A context that has ended does not hurt a collective that is complete.
	each(comms, func(c collective.Comm) error {
		p := c.Start(collective.Request{Kind: collective.Barrier})
		if err := wait(p); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return p.Wait(ctx)
	}).ok(t)
	canceled := make(chan struct{}) // closed when rank 0 has given up
	errs := each(comms, func(c collective.Comm) error {
		switch c.Rank() {
		case 0:
			defer close(canceled)
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(20*time.Millisecond, func() { cancel(errCause) })
			return c.Start(collective.Request{Kind: collective.Barrier}).Wait(ctx)
		case n - 1: // never comes to the barrier, until the others have failed
			<-canceled
			time.Sleep(50 * time.Millisecond) // between hosts, the news take a moment
		}
		return secondAtMost(c)
	})
	errs.are(t, collective.ErrAborted)
	errs[:1].are(t, errCause)
}

// secondAtMost is how a barrier ends in a group that another rank has ended, which had
// come to it before. Between hosts the news may take longer than the rest of that
// barrier, but nobody passes the next.
func secondAtMost(c collective.Comm) error {
	barrier := collective.Request{Kind: collective.Barrier}
	if err := do(c, barrier); err != nil {
		return err
	}
	return do(c, barrier)
}

// closing lets every rank close as soon as it has finished, and tests the
// Comm after that.
func (f Factory) closing(t *testing.T) {
	for _, length := range []int{10, 1 << 18} {
		for _, n := range []int{2, 3, 8} {
			comms := f.New(t, min(n, f.MaxRanks))
			each(comms, func(c collective.Comm) error {
				req, err := f.sum(c, length)
				for range 3 {
					if err == nil {
						err = do(c, req)
					}
				}
				return errors.Join(err, c.Close())
			}).ok(t)
		}
	}
	for _, n := range []int{1, min(3, f.MaxRanks)} {
		comms := f.New(t, n)
		each(comms, func(c collective.Comm) error {
			if err := do(c, collective.Request{Kind: collective.Barrier}); err != nil {
				return err
			}
			return c.Close()
		}).ok(t)
		each(comms, func(c collective.Comm) error { return c.Close() }).ok(t)
		each(comms, func(c collective.Comm) error {
			c.Abort(errCause) // must not crash
			if _, err := c.Alloc(10); !errors.Is(err, collective.ErrClosed) {
				return fmt.Errorf("alloc after close: %w", err)
			}
			return do(c, collective.Request{Kind: collective.Barrier})
		}).are(t, collective.ErrClosed)
	}
}

// closePending closes one rank while its collectives wait for the others.
func (f Factory) closePending(t *testing.T) {
	n := f.pair(t, 3)
	comms := f.group(t, n)
	left := make(chan struct{}) // closed when rank 0 has closed
	each(comms, func(c collective.Comm) error {
		if c.Rank() == n-1 {
			<-left
			time.Sleep(50 * time.Millisecond) // between hosts, the news take a moment
			return secondAtMost(c)
		}
		var pending []collective.Pending
		for range 10 {
			pending = append(pending, c.Start(collective.Request{Kind: collective.Barrier}))
		}
		if c.Rank() == 0 {
			time.Sleep(5 * time.Millisecond)
			err := c.Close()
			close(left)
			if err != nil {
				return fmt.Errorf("close: %w", err)
			}
		}
		for i, p := range pending {
			err := wait(p)
			if i == 0 && err == nil && c.Rank() != 0 {
				continue // as in secondAtMost
			}
			if !isAny(err, []error{collective.ErrAborted, collective.ErrClosed, collective.ErrPeerLost}) {
				return fmt.Errorf("pending collective: %w", err)
			}
		}
		return wait(pending[len(pending)-1])
	}).are(t, collective.ErrAborted, collective.ErrClosed, collective.ErrPeerLost)
}

// closePeer closes one rank in an orderly way while the others go on.
func (f Factory) closePeer(t *testing.T) {
	for _, length := range []int{10, 1 << 20} {
		n := f.pair(t, 4)
		comms := f.group(t, n)
		var together sync.WaitGroup
		together.Add(n)
		each(comms, func(c collective.Comm) error {
			req, err := f.sum(c, length)
			if err == nil {
				err = do(c, req)
			}
			together.Done()
			if err != nil {
				return err
			}
			together.Wait() // the first collective is complete on every rank
			if c.Rank() == 1 {
				return c.Close()
			}
			if err := do(c, req); !isAny(err, []error{collective.ErrAborted, collective.ErrPeerLost}) {
				return fmt.Errorf("a collective without rank 1 ended with: %w", err)
			}
			return nil
		}).ok(t)
	}
}
