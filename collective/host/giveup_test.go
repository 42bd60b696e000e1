package host

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/schedule"
)

// stubborn is a connection whose reads go on after their deadline, until they are let go.
type stubborn struct {
	net.Conn
	reads, letGo chan struct{}
}

func (s stubborn) SetDeadline(time.Time) error { return nil }
func (s stubborn) Read(b []byte) (int, error) {
	s.reads <- struct{}{}
	<-s.letGo
	b[0] = 1
	return 0, errCut
}

// TestGiveUpWaits: a buffer that is given up is not written to from then on, so who gives it up
// waits for whoever reads into it.
func TestGiveUpWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := stubborn{reads: make(chan struct{}, 2), letGo: make(chan struct{})}
		c := newThreads([]*link{nil, {rank: 1}}, []net.Conn{nil, conn})
		go c.fill(1)
		c.post(1, make([]byte, 4))
		c.post(1, make([]byte, 4))
		<-conn.reads
		given := make(chan struct{})
		go func() {
			c.giveUp()
			close(given)
		}()
		for range 2 {
			synctest.Wait()
			if is(given) {
				t.Fatal("it is given up, and somebody reads into it")
			}
			conn.letGo <- struct{}{}
		}
		<-given
		c.over()
	})
}

// failing is a carrier that sends nothing, and counts how often what is posted is given up.
type failing struct {
	carrier
	err   error
	given int
}

func (f *failing) flush(context.Context) error { return f.err }
func (f *failing) giveUp()                     { f.given++ }

// TestErrorGivesUp: after an error in an all-reduce where leaders fill the caller's own vector
// that is given up before the caller has it back; nothing is where it is staged, or well.
func TestErrorGivesUp(t *testing.T) {
	odd := errors.New("odd")
	inPlace := schedule.Call{Kind: collective.AllReduce, Bytes: 1 << 20, Elem: 4, Wide: 4, Ranks: 2, Hosts: 2, Locals: 1}
	staged := inPlace
	staged.Elem = 2
	for _, test := range []struct {
		call schedule.Call
		err  error
		want int
	}{{inPlace, odd, 1}, {inPlace, nil, 0}, {staged, odd, 0}} {
		c := &failing{err: test.err}
		m := netMover{&meeting{peers: &peers{mesh: &mesh{carrier: c}}, call: test.call, plan: []schedule.Step{{Do: schedule.Ask}}}}
		if err := m.carryOut(t.Context(), collective.Request{}); !errors.Is(err, test.err) || c.given != test.want {
			t.Errorf("in place %v: after %v it has given up %d times, want %d", test.call.InPlace(), err, c.given, test.want)
		}
	}
}
