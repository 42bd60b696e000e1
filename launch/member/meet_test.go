package member

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

// What a launcher has sent before it was killed is told before its loss, also where the end
// of its life line is seen first: it may say why the job ends.
func TestLossIsTheLast(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	from, to := b.link("a"), a.link("b")
	to.mu.Lock() // what comes over the link is not taken
	b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
	for written := false; !written; time.Sleep(time.Millisecond) {
		from.mu.Lock()
		written = from.sent == 1
		from.mu.Unlock()
	}
	if err := b.end(); err != nil { // as a killed process does: without a farewell
		t.Error(err)
	}
	time.Sleep(50 * time.Millisecond) // the end of its life line is seen
	to.mu.Unlock()
	if in := next(t, a); in.Lost || in.Msg.Kind != rendezvous.KindRegister {
		t.Errorf("got %+v, want the message first", in)
	}
	if in := next(t, a); !in.Lost || in.From != "b" || in.How != rendezvous.Killed {
		t.Errorf("got %+v, want the loss", in)
	}
}

// Whose connection node 0 gives up before it has introduced itself, as where it stood still
// for too long, connects again.
func TestGivenUpBeforeTheIntroduction(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	between, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = between.Close() })
	go func() {
		handshake := int64(nonceBytes + 1 + len(testSecret.proof("listener", nil))) // of node 0
		for most := handshake; ; most = 1 << 62 {
			c, err := between.Accept()
			if err != nil {
				return
			}
			real, err := net.Dial("tcp", a.port.addr.String())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(real, c) }()
			go func() {
				_, _ = io.CopyN(c, real, most)
				_, _ = c.Close(), real.Close()
			}()
		}
	}()
	b := open1(t, Config{Name: "b", Endpoint: between.Addr().String()})
	b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
	if in := next(t, a); in.Lost || in.From != "b" {
		t.Errorf("got %+v", in)
	}
}

// Another launcher at the coordinator's address is not taken for it, though it has the key
// and the label.
func TestAnotherInItsPlace(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0", Key: key})
	b := open1(t, Config{Name: "b", Endpoint: a.port.addr.String(), Key: key})
	b.mu.Lock()
	b.coord = "who was there before"
	b.mu.Unlock()
	c, err := b.dial(t.Context(), b.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, _, err := b.introduce(c, false); err != errAnother { //nolint:errorlint // it is not wrapped
		t.Errorf("got %v, want %v", err, errAnother)
	}
}
