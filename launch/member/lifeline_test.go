package member

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// broken is a connection that fails with err once its other end has spoken, and notes that
// it was closed.
type broken struct {
	net.Conn
	err    error
	spoke  bool
	closed atomic.Bool
}

func (b *broken) Read(p []byte) (int, error) {
	if b.spoke {
		return 0, b.err
	}
	b.spoke = true
	p[0] = sayAlive
	return 1, nil
}

func (b *broken) Write(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

func (b *broken) Close() error { b.closed.Store(true); return nil }

// The end of a life line is the death of its launcher only if that had spoken, and not said
// that it leaves, and if it is how the kernel ends what a process leaves behind. Else it is
// silence. It is closed here, too, and no more used.
func TestEndOfALifeLine(t *testing.T) {
	for name, tt := range map[string]struct {
		says string // before it closes its end
		err  error  // how reading fails then; nil if it closes
		how  rendezvous.Loss
		left bool
	}{
		"killed":          {string(sayAlive), nil, rendezvous.Killed, false},
		"refused":         {"", nil, rendezvous.Unreachable, false},
		"leaves":          {string(sayAlive) + string(sayLeave), nil, 0, true},
		"a broken cable":  {"", errors.New("no route to host"), rendezvous.Unreachable, false},
		"a reset":         {"", os.NewSyscallError("read", unix.ECONNRESET), rendezvous.Killed, false},
		"leaves at once":  {string(sayLeave), nil, 0, true},
		"says things new": {"z", nil, rendezvous.Killed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := imagined(t)
				m.Formed(2)
				here, there := net.Pipe()
				b := &broken{err: tt.err}
				if tt.err != nil {
					here = b
				}
				over := make(chan struct{})
				go func() { m.live("b", here, netip.AddrPort{}); close(over) }()
				go func() { _, _ = io.Copy(io.Discard, there) }()
				if tt.err == nil {
					_, _ = there.Write([]byte(tt.says))
				}
				_ = there.Close()
				<-over
				in, after := m.loss(3 * time.Second)
				switch {
				case tt.left && in.From != "":
					t.Errorf("got %+v of who has left", in)
				case !tt.left && (in.From != "b" || !in.Lost || in.How != tt.how):
					t.Errorf("got %+v, want %v", in, tt.how)
				case tt.how == rendezvous.Killed && after > pulseInterval:
					t.Errorf("known after %v", after)
				}
				if m.lives["b"].conn != nil || tt.err != nil && !b.closed.Load() {
					t.Error("the connection is kept")
				}
			})
		})
	}
}

// Whose life line says something lives as long as it does, and who never says anything is
// looked after, too.
func TestMuteLifeLine(t *testing.T) {
	for _, pulses := range []int{0, 30} {
		synctest.Test(t, func(t *testing.T) {
			m := imagined(t)
			m.Formed(2)
			here, there := net.Pipe()
			go m.live("b", here, netip.AddrPort{})
			go func() { _, _ = io.Copy(io.Discard, there) }()
			go func() {
				for range pulses {
					time.Sleep(pulseInterval)
					_, _ = there.Write([]byte{sayAlive})
				}
			}()
			in, after := m.loss(time.Minute)
			if spoke := time.Duration(pulses) * pulseInterval; in.From != "b" || after < spoke || after > spoke+time.Second {
				t.Errorf("after %d pulses: got %+v after %v", pulses, in, after)
			}
			_ = there.Close()
		})
	}
}

// A life line takes the place of another: the end of that one changes nothing. Pulses go over
// the new one, and it is told at the end that this launcher leaves.
func TestNewLifeLineStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := imagined(t)
		var heres, theres [2]net.Conn
		var said []byte
		for i := range heres {
			heres[i], theres[i] = net.Pipe()
			go m.live("b", heres[i], netip.AddrPort{})
			go func() {
				all, _ := io.ReadAll(theres[i])
				if i == 1 {
					said = all
				}
			}()
			synctest.Wait()
		}
		time.Sleep(pulseInterval / 2)
		if m.lives["b"].conn != heres[1] {
			t.Error("the new one is not used")
		}
		time.Sleep(10 * pulseInterval)
		m.farewell()
		synctest.Wait()
		if want := 11; len(said) != want+1 || said[want-1] != sayAlive || said[want] != sayLeave {
			t.Errorf("over the new one it said %q, want %d pulses and a farewell", said, want)
		}
	})
}

// A launcher that is about to end takes no life line.
func TestLateLifeLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := imagined(t)
		m.closing = true
		here, there := net.Pipe()
		go m.live("b", here, netip.AddrPort{})
		if all, err := io.ReadAll(there); len(all) > 0 || err != nil {
			t.Errorf("it said %q, %v", all, err)
		}
	})
}
