package member

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/launch/rendezvous"
)

// script is a connection of which one end is played: what it says is in, and what it hears
// is kept. It says nothing more after that: who waits then must have set a time for it.
type script struct {
	net.Conn
	in      io.Reader
	heard   bytes.Buffer
	limited bool
}

func (s *script) Write(p []byte) (int, error) { return s.heard.Write(p) }

func (s *script) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err != nil && s.limited {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func (s *script) SetDeadline(at time.Time) error {
	s.limited = !at.IsZero() && time.Until(at) < time.Minute
	return nil
}

// recorded is a connection whose other end's words are kept.
type recorded struct {
	net.Conn
	said bytes.Buffer
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.said.Write(p[:n])
	return n, err
}

// TestReplay: what one end of a handshake said is no proof of the key a second time, to
// either end.
func TestReplay(t *testing.T) {
	a, b := wires(t)
	x, y := &recorded{Conn: a}, &recorded{Conn: b}
	if _, _, errA, errB := shake(t, x, y, testSecret, testSecret); errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if _, err := testSecret.dial(&script{in: &x.said}); !errors.Is(err, errKey) {
		t.Errorf("a dialer hears a listener's words of another time: %v, want %v", err, errKey)
	}
	y.said.Next(len(linkMagic))
	if _, err := testSecret.answer(&script{in: &y.said}); !errors.Is(err, errKey) {
		t.Errorf("a listener hears a dialer's words of another time: %v, want %v", err, errKey)
	}
}

// TestReflected: a stranger who sends a dialer's own proof back, or none, and says that all is
// well, is no listener of the job.
func TestReflected(t *testing.T) {
	for _, reflect := range []bool{true, false} {
		a, b := wires(t)
		go func() {
			hello := make([]byte, len(linkMagic)+nonceBytes)
			_, _ = io.ReadFull(b, hello)
			_, _ = b.Write(hello[len(linkMagic):])
			proofs := make([]byte, 64)
			_, _ = io.ReadFull(b, proofs)
			if !reflect {
				clear(proofs)
			}
			_, _ = b.Write(append([]byte{verdictGood}, proofs[:32]...))
		}()
		if _, err := testSecret.dial(a); !errors.Is(err, errKey) {
			t.Errorf("reflected %v: %v, want %v", reflect, err, errKey)
		}
	}
}

// TestSilentEnd: who waits for the other end of a handshake does not wait for ever.
func TestSilentEnd(t *testing.T) {
	for name, begin := range map[string]func(secret, net.Conn) (*secure, error){"dialer": secret.dial, "listener": secret.answer} {
		if _, err := begin(testSecret, &script{in: &bytes.Buffer{}}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v, want that its time is over", name, err)
		}
	}
}

// TestKeys: what one end seals opens for the other end of this connection only: not for
// itself, to whom it may be sent back, nor on another connection, where it looks different.
func TestKeys(t *testing.T) {
	seal := func(nonces []byte, mine, theirs string, in io.Reader) (*secure, *script) {
		wire := &script{in: in}
		s, err := testSecret.seal(wire, nonces, mine, theirs)
		if err != nil {
			t.Fatal(err)
		}
		return s, wire
	}
	here, elsewhere := bytes.Repeat([]byte{1}, 2*nonceBytes), bytes.Repeat([]byte{2}, 2*nonceBytes)
	from, wire := seal(here, "dialer", "listener", nil)
	if _, err := from.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	sealed := wire.heard.Bytes()
	for _, tt := range []struct {
		name, mine, theirs string
		nonces             []byte
		opens              bool
	}{
		{"the other end", "listener", "dialer", here, true}, {"itself", "dialer", "listener", here, false}, {"another connection", "listener", "dialer", elsewhere, false},
	} {
		to, _ := seal(tt.nonces, tt.mine, tt.theirs, bytes.NewReader(sealed))
		var got [4]byte
		_, err := io.ReadFull(to, got[:])
		if opens := err == nil && string(got[:]) == "text"; opens != tt.opens {
			t.Errorf("for %s it opens %v (%v), want %v", tt.name, opens, err, tt.opens)
		}
	}
}

// A frame that says it is longer than any may be is refused before it is read.
func TestFrameTooLong(t *testing.T) {
	head := frame{kind: frameMessage}.encode()
	binary.BigEndian.PutUint32(head[9:], maxFrame+1)
	if _, err := readFrame(bytes.NewReader(head)); err == nil || !strings.Contains(err.Error(), "is longer than") {
		t.Errorf("got %v", err)
	}
}

// A link goes on only where the other end left it: not where it lacks a message that is no
// longer kept, nor where it has more than there were.
func TestLinkGoesOn(t *testing.T) {
	for has, fits := range map[uint64]bool{0: false, 1: false, 2: true, 3: true, 4: true, 5: false, 9: false} {
		c, _ := wires(t)
		l := newLink("x")
		l.base, l.queue = 3, [][]byte{{3}, {4}}
		if err := l.attach(&secure{Conn: c}, has); (err == nil) != fits || l.connected() != fits {
			t.Errorf("the other end has %d of messages 3 and 4: %v", has, err)
		}
		if l.pending() != (!fits || has < 4) {
			t.Errorf("the other end has %d of messages 3 and 4: pending is %v", has, l.pending())
		}
		for number := has + 1; fits && number <= 4; number++ {
			if f, ok := l.next(l.conn); !ok || f.kind != frameMessage || f.number != number || f.text[0] != byte(number) {
				t.Errorf("after %d: %+v", has, f)
			}
		}
	}
}

// A connection that another takes the place of is closed: whoever still reads from it sees that.
func TestOldConnectionCloses(t *testing.T) {
	l := newLink("x")
	old, end := wires(t)
	c, _ := wires(t)
	for _, one := range []net.Conn{old, c} {
		if err := l.attach(&secure{Conn: one}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := end.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := end.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// The connection that took the place of another stays when that one ends.
func TestNewConnectionStays(t *testing.T) {
	l := newLink("x")
	a, _ := wires(t)
	b, _ := wires(t)
	old := &secure{Conn: a}
	for _, one := range []*secure{old, {Conn: b}} {
		if err := l.attach(one, 0); err != nil {
			t.Fatal(err)
		}
	}
	if l.detach(old); !l.connected() {
		t.Error("the new connection went with the old one")
	}
}

// A message comes once and in its turn: again it is left out, and too early it is an error.
func TestTurn(t *testing.T) {
	text, err := rendezvous.Encode(rendezvous.Message{Kind: rendezvous.KindAck})
	if err != nil {
		t.Fatal(err)
	}
	for number, want := range map[uint64]string{4: "0 5 true", 5: "0 5 true", 6: "1 6 true", 7: "0 5 false"} {
		l, came := newLink("x"), 0
		l.received = 5
		err := l.receive(frame{kind: frameMessage, number: number, text: text}, func(rendezvous.Message) { came++ })
		if got := fmt.Sprint(came, l.got(), err == nil); got != want {
			t.Errorf("message %d after 5: %s, want %s (%v)", number, got, want, err)
		}
	}
}

// The farewell waits until the other end has all that was sent.
func TestFarewellIsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLink("x")
		l.queue, l.leaving = [][]byte{{1}}, true
		c := &secure{Conn: &script{}}
		if err := l.attach(c, 0); err != nil {
			t.Fatal(err)
		}
		var sent []byte
		go func() {
			for len(sent) < 2 {
				f, _ := l.next(c)
				sent = append(sent, f.kind)
			}
		}()
		synctest.Wait()
		if string(sent) != "m" {
			t.Errorf("before it is acknowledged: %q", sent)
		}
		l.mu.Lock()
		l.drop(1)
		l.changed.Broadcast()
		l.mu.Unlock()
		synctest.Wait()
		if string(sent) != "mf" {
			t.Errorf("after it is acknowledged: %q", sent)
		}
	})
}
