package member

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/rendezvous"
)

// askPatiently asks again as a judge does: on a busy machine an answer may be late.
func askPatiently(m *Member, name string) (answered bool, others int) {
	for range 20 {
		if answered, others = m.ask(name); answered {
			break
		}
	}
	return answered, others
}

// Who is cut off says so although gossip, which is sooner than a judge that asks often,
// knows only one other launcher by then; of two, each may be the one; and who has heard
// meanwhile that another leaves is not the one.
func TestCutOff(t *testing.T) {
	for _, c := range []struct {
		launchers   int
		left, alone bool
	}{{2, false, false}, {3, false, true}, {3, true, false}} {
		told := false
		for try := 0; !told; try++ { // a farewell is gossip, which a busy machine may not send in time
			if try == 10 {
				t.Fatal("nobody hears that another leaves")
			}
			var in rendezvous.Inbound
			if in, told = cutOffFrom(t, c.launchers, c.left); told && (in.From != "a" || !in.Lost || in.How == rendezvous.Killed || in.Alone != c.alone) {
				t.Errorf("%+v: got %+v", c, in)
			}
		}
	}
}

// cutOffFrom is how b misses a, which answers it no more, and whether it has been told by then
// that another has left, if one was to.
func cutOffFrom(t *testing.T, launchers int, left bool) (in rendezvous.Inbound, told bool) {
	t.Helper()
	a, b := pair(t, "127.0.0.1")
	_ = b.line1(t, "a")
	var other *Member
	if left {
		other = open1(t, Config{Name: "c", Endpoint: net.JoinHostPort(a.Addr(), strconv.Itoa(a.Port()))})
		other.awaitPlace(t, "b")
		b.awaitPlace(t, "c")
	}
	b.Formed(launchers)
	b.unplug("a")
	t.Cleanup(func() { _ = a.end() })         // it need not say farewell
	if err := a.list.Shutdown(); err != nil { // it answers nobody any more
		t.Fatal(err)
	}
	heard := time.Now().Add(-2 * b.silence())
	if left {
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		told = !b.parted.IsZero()
		b.mu.Unlock()
		if !told {
			return in, false
		}
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			b.mu.Lock()
			b.lives["a"].heard, b.lives["a"].spoke = heard, heard // nor says anything
			b.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	if in = next(t, b); in.From == "c" {
		in = next(t, b)
	}
	return in, true
}

// Strangers who connect, and say nothing or only how a launcher begins, do not disturb who
// joins, and hold no more connections than there is room for.
func TestSilentStrangers(t *testing.T) {
	for name, says := range map[string]string{"nothing": "", "begins a link": linkMagic, "begins a stream of memberlist": "\xf4\xc8ab"} {
		t.Run(name, func(t *testing.T) {
			a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
			at := net.JoinHostPort(a.Addr(), strconv.Itoa(a.Port()))
			var strangers []net.Conn
			for range silentLimit + 50 {
				c, err := net.Dial("tcp", at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if _, err := c.Write([]byte(says)); err != nil {
					t.Fatal(err)
				}
				strangers = append(strangers, c)
			}
			held := len(strangers)
			for end := time.Now().Add(handshakeLimit / 2); held > silentLimit && time.Now().Before(end); {
				held = stillOpen(strangers)
			}
			if held > silentLimit {
				t.Errorf("%d strangers hold a connection, want at most %d", held, silentLimit)
			}
			b := open1(t, Config{Name: "b", Endpoint: at})
			_, _ = a.line1(t, "b"), b.line1(t, "a")
			b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
			if in := next(t, a); in.Lost || in.From != "b" {
				t.Errorf("got %+v", in)
			}
		})
	}
}

// stillOpen is how many of conns their other end has not closed.
func stillOpen(conns []net.Conn) (n int) {
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond / 10))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			n++
		}
	}
	return n
}

// The kernel ends the connections of a process that has ended: with a reset where there was
// something to be read.
func TestEnded(t *testing.T) {
	for _, err := range []error{io.EOF, unix.ECONNRESET, unix.EPIPE} {
		if !ended(&net.OpError{Op: "read", Err: err}) {
			t.Errorf("%v is not the end of a process", err)
		}
	}
	for _, err := range []error{errors.New("network is down"), unix.ETIMEDOUT, unix.ENETUNREACH, net.ErrClosed} {
		if ended(&net.OpError{Op: "read", Err: err}) {
			t.Errorf("%v is the end of a process", err)
		}
	}
}
