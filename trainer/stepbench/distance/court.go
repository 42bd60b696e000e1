package distance

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	rallies = 64   // of a pair
	returns = 100  // of the ball, in a rally: so short that both players often have their processors for all of it
	patient = 1024 // looks at the ball between two looks at the clock
)

// court has a ball that two players throw to each other. It lies on a cache line of its
// own, and so does what they look at while they wait; processors fetch lines in twos.
type court struct {
	_    [128]byte
	ball atomic.Uint64 // odd on its way to the one who answers, even on its way back
	_    [120]byte
	over atomic.Bool
	_    [127]byte
}

// pair is the one-way distance of two processors, in nanoseconds; 0 if no rally was
// played until then.
func pair(ctx context.Context, cpus [2]int, until time.Time) (best float64, err error) {
	c := &court{}
	var players errgroup.Group
	players.Go(func() error {
		defer c.over.Store(true)
		return on(cpus[0], func() { best = c.serve(ctx, rallies, until) })
	})
	players.Go(func() error {
		defer c.over.Store(true)
		return on(cpus[1], c.answer)
	})
	err = players.Wait()
	return best, err
}

// serve plays n rallies with one who answers. It returns the time of one way, in
// nanoseconds, in the shortest rally; 0 if none was played until then.
func (c *court) serve(ctx context.Context, n int, until time.Time) (best float64) {
	late := func() bool { return c.over.Load() || ctx.Err() != nil || time.Now().After(until) }
	ball := c.ball.Load()
	for range n {
		began := time.Now()
		for range returns {
			c.ball.Store(ball + 1)
			if ball += 2; !c.wait(ball, late) {
				return best
			}
		}
		took := float64(time.Since(began).Nanoseconds()) / (2 * returns)
		if best == 0 || took < best {
			best = took
		}
	}
	return best
}

// answer returns every ball until it is over.
func (c *court) answer() {
	for ball := uint64(1); c.wait(ball, c.over.Load); ball += 2 {
		c.ball.Store(ball + 1)
	}
}

// wait waits for the ball; false if it is late before.
func (c *court) wait(ball uint64, late func() bool) bool {
	for {
		for range patient {
			if c.ball.Load() == ball {
				return true
			}
		}
		if late() {
			return false
		}
	}
}

// on does f on a thread of that processor, which may afterwards run where it might
// before. A thread that cannot ends with the goroutine.
func on(cpu int, f func()) error {
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("which processors a thread may use: %w", err)
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("bind a thread to processor %d: %w", cpu, err)
	}
	f()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		return fmt.Errorf("let a thread leave processor %d again: %w", cpu, err)
	}
	runtime.UnlockOSThread()
	return nil
}
