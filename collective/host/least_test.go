package host_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// TestLeast: what all-reduces are held against does sum, every time, and ends with the
// group.
func TestLeast(t *testing.T) {
	const ranks, n, rounds = 3, 300, 50
	comms, err := host.NewLocal(t.Context(), ranks)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			l, err := c.NewLeast(4 * n)
			if err != nil {
				t.Error(err)
				return
			}
			x := make([]float32, n)
			for round := range rounds {
				for i := range x {
					x[i] = float32(r + i*round)
				}
				if err := l.Run(collective.VecOf(x)); err != nil {
					t.Error(err)
					return
				}
				for i := range x {
					if want := float32(0 + 1 + 2 + ranks*i*round); x[i] != want {
						t.Errorf("rank %d, round %d: element %d is %v, want %v", r, round, i, x[i], want)
						return
					}
				}
				if err := l.Run(collective.Vec{Type: collective.U8}); err != nil {
					t.Error(err)
				}
			}
			if err := l.Run(collective.VecOf(make([]float32, n+1))); !errors.Is(err, collective.ErrInvalid) {
				t.Errorf("a vector that is too long: got %v, want ErrInvalid", err)
			}
			if r == 1 { // it does not come, but ends the group
				c.Abort(errors.New("test"))
			} else if err := l.Run(collective.VecOf(x)); err == nil {
				t.Error("the group has ended, and all met")
			}
		})
	}
	wg.Wait()
	for _, c := range comms {
		_ = c.Close()
	}
}

// TestLeastSleeps: a rank that waits long for another leaves the processor, or it might
// keep it from whom it waits for.
func TestLeastSleeps(t *testing.T) {
	const late = 500 * time.Millisecond
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, c := range comms {
		wg.Go(func() {
			defer func() { _ = c.Close() }()
			runtime.LockOSThread() // as whoever measures does
			l, err := c.NewLeast(0)
			if err != nil {
				t.Error(err)
				return
			}
			if r == 1 {
				time.Sleep(late)
			}
			before := cpuTime(t)
			if err := l.Run(collective.Vec{Type: collective.U8}); err != nil {
				t.Error(err)
			}
			if used := cpuTime(t) - before; used > late/2 {
				t.Errorf("rank %d: the process ran for %v of %v in which it waited", r, used, late)
			}
		})
	}
	wg.Wait()
}

// cpuTime is what this process has had of processors.
func cpuTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Error(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
