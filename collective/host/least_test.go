package host_test

import (
	"errors"
	"sync"
	"testing"

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
