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
	const ranks, n, rounds = 3, 300, 200
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
						c.Abort(errors.New("wrong")) // nobody waits for this rank
						return
					}
				}
				if round%3 == 0 { // else one sum follows another, in the other half of the memory
					if err := l.Run(collective.Vec{Type: collective.U8}); err != nil {
						t.Error(err)
					}
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

// There is no least of ranks that share no memory, nor of less than nothing.
func TestNoLeast(t *testing.T) {
	for hosts, bytes := range map[string]int{"1": -1, "2": 8} {
		var wg sync.WaitGroup
		for _, c := range group(t, 2, host.Config{Hosts: pretend(hosts, 2), ListenIP: "127.0.0.1"}) {
			wg.Go(func() {
				defer shut(t, c)
				if _, err := c.(*host.Comm).NewLeast(bytes); !errors.Is(err, collective.ErrInvalid) {
					t.Errorf("%d bytes on %s hosts: got %v, want ErrInvalid", bytes, hosts, err)
				}
			})
		}
		wg.Wait()
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
			before, began := cpuTime(t), time.Now()
			if err := l.Run(collective.Vec{Type: collective.U8}); err != nil {
				t.Error(err)
			}
			used, waited := cpuTime(t)-before, time.Since(began) // longer than late on a busy machine
			if used > max(late, waited)/2 {
				t.Errorf("rank %d: the process ran for %v of %v in which it waited", r, used, waited)
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
