package member

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

// linked has a launcher introduced to a that has a link alone, no life line, and said to
// listen at a port.
func linked(t *testing.T, a *Member, name string, port net.Addr) net.Conn {
	t.Helper()
	b := &Member{cfg: Config{Name: name}, secret: a.secret, port: &transport{addr: port.(*net.TCPAddr).AddrPort()}, links: map[string]*link{}}
	c, err := b.dial(t.Context(), a.port.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.introduce(c, false); err != nil {
		t.Fatal(err)
	}
	return c
}

// Whose link ends was killed if nobody listens any more where it did; else the link is made
// anew.
func TestEndOfALink(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if err := linked(t, a, "b", here.Addr()).Close(); err != nil {
		t.Fatal(err)
	}
	if err := here.(*net.TCPListener).SetDeadline(time.Now().Add(arrives)); err != nil {
		t.Fatal(err)
	}
	asked, err := here.Accept() // whether it lives
	if err != nil {
		t.Fatal(err)
	}
	_ = asked.Close()
	if err := linked(t, a, "c", gone.Addr()).Close(); err != nil {
		t.Fatal(err)
	}
	if in := next(t, a); !in.Lost || in.From != "c" || in.How != rendezvous.Killed {
		t.Errorf("got %+v, want that c was killed", in)
	}
}

// At the end nobody waits for who is lost to hear of it.
func TestLostHearsNoFarewell(t *testing.T) {
	for _, lost := range []bool{true, false} {
		a, b := pair(t, "127.0.0.1")
		_, _ = a.line1(t, "b"), b.line1(t, "a")
		a.awaitPlace(t, "b") // gossip that hears of b only now would have it live
		if lost {
			if err := b.end(); err != nil { // as a killed process does: without a farewell
				t.Error(err)
			}
			if in := next(t, a); !in.Lost {
				t.Errorf("got %+v, want the loss", in)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if l := a.link("b"); l.leaving == lost {
			t.Errorf("b is lost: %v, and it is told farewell: %v", lost, l.leaving)
		}
	}
}

// Who was cut off while others were awaited, and is not any more, waits at its end like anybody
// else until what it has sent is taken.
func TestCutOffNoMore(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	a.Formed(3)
	for i, deadline := 0, time.Now().Add(arrives); !a.alone.Load(); i++ { // on a busy machine one may count as heard later
		a.lookAfter(fmt.Sprint("x", i)) // nothing is ever heard of these two
		a.lookAfter(fmt.Sprint("y", i))
		if first, second := next(t, a), next(t, a); time.Now().After(deadline) {
			t.Fatalf("got %+v and %+v, want that a is cut off", first, second)
		}
	}
	b := open1(t, Config{Name: "b", Endpoint: a.port.addr.String()})
	_ = a.line1(t, "b")
	if a.alone.Load() {
		t.Error("it counts as cut off, though another is heard")
	}
	const n = 40 // they are all to be taken within closeLimit, also under the race detector
	for i := range n {
		a.Send("b", rendezvous.Message{Kind: rendezvous.KindEnd, Epoch: i, Name: strings.Repeat("x", 100_000)})
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for i := range n {
		if in := next(t, b); in.Lost || in.Msg.Epoch != i {
			t.Fatalf("message %d of %d: got %v of epoch %d, lost: %v", i, n, in.Msg.Kind, in.Msg.Epoch, in.Lost)
		}
	}
	if in := next(t, b); !in.Lost || in.From != "a" {
		t.Errorf("got %+v, want that a has left", in)
	}
}
