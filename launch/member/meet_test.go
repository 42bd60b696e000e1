package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

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
	b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
	if in := next(t, a); in.From != "b" { // so the link is in use, and the next connection takes its place
		t.Fatalf("got %+v", in)
	}
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
	// With that its own link has ended, over which it has looked again for the one it knew.
	if in := next(t, b); !in.Lost || in.From != "a" || in.How != rendezvous.Killed {
		t.Errorf("got %+v, want that the one before is lost", in)
	}
}

// Who has been introduced may be silent for as long as it likes: the time for that is over.
func TestIntroducedForGood(t *testing.T) {
	nonces := make([]byte, 2*nonceBytes)
	says := &script{}
	theirs, err := testSecret.seal(says, nonces, "listener", "dialer")
	if err == nil {
		_, err = theirs.Write(frame{frameIntro, 5, []byte(`{"name":"a"}`)}.encode())
	}
	if err != nil {
		t.Fatal(err)
	}
	wire := &script{in: &says.heard}
	ours, err := testSecret.seal(wire, nonces, "dialer", "listener")
	if err != nil {
		t.Fatal(err)
	}
	m := &Member{cfg: Config{Name: "b"}, port: &transport{}, links: map[string]*link{}}
	l, has, err := m.introduce(ours, false)
	if err != nil || l.peer != "a" || has != 5 || wire.limited {
		t.Errorf("introduced to %+v, which has %d, with a limit: %v, %v", l, has, wire.limited, err)
	}
}

// between is a connection of which only the ends are known.
type between struct {
	net.Conn
	here, there net.TCPAddr
}

func (b between) LocalAddr() net.Addr  { return &b.here }
func (b between) RemoteAddr() net.Addr { return &b.there }

// A launcher that reaches node 0 by an address that is good for the next wire only is not to
// be found by it at one that is good for more, nor the reverse.
func TestSameScope(t *testing.T) {
	for ends, want := range map[[2]string]bool{
		{"fe80::1", "fe80::2"}: true, {"fd00::1", "fd00::2"}: true, {"10.0.0.1", "10.0.0.2"}: true, {"169.254.0.1", "10.0.0.2"}: true,
		{"fe80::1", "fd00::2"}: false, {"fd00::1", "fe80::2"}: false,
	} {
		c := between{here: net.TCPAddr{IP: net.ParseIP(ends[0])}, there: net.TCPAddr{IP: net.ParseIP(ends[1])}}
		if got := sameScope(c); got != want {
			t.Errorf("%v: %v, want %v", ends, got, want)
		}
	}
}

// Whose host is gone without a word is noticed by the kernel, and small messages go at once.
func TestTune(t *testing.T) {
	c, _ := wires(t)
	if err := tune(c); err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[[2]int]int{
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT}: 60_000, {unix.IPPROTO_TCP, unix.TCP_NODELAY}: 1, {unix.SOL_SOCKET, unix.SO_KEEPALIVE}: 1, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}: 10,
	} {
		var got int
		var inner error
		if err := raw.Control(func(fd uintptr) { got, inner = unix.GetsockoptInt(int(fd), option[0], option[1]) }); err != nil || inner != nil || got != want {
			t.Errorf("option %v is %d, want %d (%v, %v)", option, got, want, err, inner)
		}
	}
}

// What comes first must be an introduction, of somebody.
func TestIntroduction(t *testing.T) {
	for text, want := range map[string]string{
		`{"name":"b","port":7,"life":true}`: "{b 7 true 0s} 5 <nil>", `{"port":7}`: "an introduction without a name", `{"name":`: "unexpected end of JSON input",
	} {
		in, has, err := readIntro(&secure{Conn: &script{}, text: frame{frameIntro, 5, []byte(text)}.encode()})
		if got := fmt.Sprint(in, has, err); !strings.HasSuffix(strings.ReplaceAll(got, "}5 ", "} 5 "), want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if _, _, err := readIntro(&secure{Conn: &script{}, text: frame{frameMessage, 5, []byte(`{"name":"b"}`)}.encode()}); err == nil {
		t.Error("a message was taken for an introduction")
	}
}

// Only node 0 is to be connected to.
func TestOnlyNode0Answers(t *testing.T) {
	_, b := pair(t, "127.0.0.1")
	c, err := net.Dial("tcp", b.port.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := b.secret.dial(c); err == nil || foreign(err) {
		t.Errorf("another launcher answers: %v", err)
	}
}

// The more launchers there are, the less often each gossips.
func TestPace(t *testing.T) {
	for nodes, want := range map[int]time.Duration{0: 1, 2: 1, 31: 1, 32: 2, 128: 8, 4096: maxSpread} {
		if got := (&Member{cfg: Config{Nodes: nodes}}).pace(time.Second); got != want*time.Second {
			t.Errorf("of %d launchers each gossips every %v, want %v", nodes, got, want*time.Second)
		}
	}
}

// TestCutShort: a try that is given up because the time is over tells nothing; the one
// before it does, also where the context has not yet noticed.
func TestCutShort(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			refused, m := errors.New("refused"), &Member{cfg: Config{Wait: time.Second}}
			tries := 0
			err := m.patiently(t.Context(), func(ctx context.Context) error {
				if tries++; tries < 3 {
					return refused
				}
				end, _ := ctx.Deadline()
				time.Sleep(time.Until(end))
				return os.ErrDeadlineExceeded
			}, func(error) bool { return true })
			if late, ok := errors.AsType[*lateError](err); !ok || !errors.Is(late.last, refused) || late.wait != time.Second {
				t.Fatalf("after %d tries %v, want that it was refused", tries, err)
			}
		})
	}
}

// TestNotReachedYet: what may pass is tried again, soon at first and then five times a second,
// until there is no time for another try; that it lasts is said after five seconds, and then
// each time after twice as long.
func TestNotReachedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := &Member{cfg: Config{Wait: 30 * time.Second, Endpoint: "node0", Log: slog.New(slog.NewTextHandler(&log, nil))}}
		begun, tries := time.Now(), []time.Duration{}
		err := m.patiently(t.Context(), func(context.Context) error {
			tries = append(tries, time.Since(begun))
			return errNotYet
		}, passing)
		want, pause := []time.Duration{0}, firstRedial
		for at := pause; ; at += pause {
			want, pause = append(want, at), min(2*pause, redialInterval)
			if at+redialInterval > m.cfg.Wait {
				break
			}
		}
		if late, ok := errors.AsType[*lateError](err); !ok || !errors.Is(late.last, errNotYet) || !slices.Equal(tries, want) {
			t.Errorf("%v after tries at %v, want them at %v", err, tries, want)
		}
		if said := log.String(); strings.Count(said, "\n") != 3 || strings.Count(said, "node 0 is not reached yet") != 3 || !strings.Contains(said, "waited=5s") || !strings.Contains(said, "waited=10s") || !strings.Contains(said, "waited=20s") {
			t.Errorf("it says\n%s", said)
		}
	})
}
