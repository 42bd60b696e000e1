package member

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

var testSecret = secret{bytes.Repeat([]byte{7}, 32), "job"}

// wires is a connection: both ends of it.
func wires(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	if a, err = net.Dial("tcp", ln.Addr().String()); err == nil {
		b, err = ln.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// shake does the handshake of both ends, whose secrets may differ.
func shake(t *testing.T, a, b net.Conn, dialer, listener secret) (x, y *secure, errA, errB error) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		if x, errA = dialer.dial(a); errA != nil {
			_ = a.Close()
		}
	})
	wg.Go(func() {
		if _, errB = io.ReadFull(b, make([]byte, len(linkMagic))); errB == nil {
			y, errB = listener.answer(b)
		}
		if errB != nil {
			_ = b.Close()
		}
	})
	wg.Wait()
	return x, y, errA, errB
}

func TestHandshake(t *testing.T) {
	for name, c := range map[string]struct {
		other secret
		want  error
	}{
		"same":  {testSecret, nil},
		"key":   {secret{bytes.Repeat([]byte{8}, 32), "job"}, errKey},
		"label": {secret{testSecret.key, "another"}, errLabel},
		"both":  {secret{bytes.Repeat([]byte{8}, 32), "another"}, errKey},
	} {
		a, b := wires(t)
		_, _, errA, errB := shake(t, a, b, testSecret, c.other)
		if !errors.Is(errA, c.want) || !errors.Is(errB, c.want) {
			t.Errorf("%s: got %v and %v, want %v", name, errA, errB, c.want)
		}
	}
	for name, speech := range map[string]string{"nothing": "", "another protocol": "SSH-2.0-OpenSSH_9.2p1 Debian, and more of that which fills the nonce\r\n"} {
		a, b := wires(t)
		_, err := b.Write([]byte(speech))
		if t, ok := b.(*net.TCPConn); ok && err == nil {
			err = t.CloseWrite()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := testSecret.dial(a); err == nil || foreign(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestSecure carries bytes of many sizes, and wants an error for every record
// that was changed, repeated or left out.
func TestSecure(t *testing.T) {
	a, b := wires(t)
	x, y, errA, errB := shake(t, a, b, testSecret, testSecret)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	text := make([]byte, 3*maxRecord+17)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for _, n := range []int{0, 1, maxRecord, len(text)} {
			if _, err := x.Write(text[:n]); err != nil {
				t.Error(err)
			}
		}
	})
	for _, n := range []int{1, maxRecord, len(text)} {
		got := make([]byte, n)
		if _, err := io.ReadFull(y, got); err != nil || !bytes.Equal(got, text[:n]) {
			t.Fatalf("%d bytes: other bytes came, %v", n, err)
		}
	}
	writing.Wait()
	for name, spoil := range map[string]func(one, two []byte) []byte{
		"changed":  func(one, _ []byte) []byte { one[7] ^= 1; return one },
		"repeated": func(one, _ []byte) []byte { return append(one, one...) },
		"left out": func(_, two []byte) []byte { return two },
		"too long": func(one, _ []byte) []byte { one[0] = 1; return one },
	} {
		tape := &tape{}
		from := &secure{Conn: tape, in: x.in, out: x.out}
		var records [2][]byte
		for i := range records {
			tape.b = nil
			if _, err := from.Write([]byte("some text")); err != nil {
				t.Fatal(err)
			}
			records[i] = tape.b
		}
		to := &secure{Conn: &tapeReader{bytes.NewReader(spoil(records[0], records[1]))}, in: y.in, out: y.out}
		got, err := io.ReadAll(to)
		if err == nil || len(got) > len("some text") {
			t.Errorf("%s: %q was read, %v", name, got, err)
		}
	}
}

type tape struct {
	net.Conn
	b []byte
}

func (t *tape) Write(p []byte) (int, error) { t.b = append(t.b, p...); return len(p), nil }

type tapeReader struct{ r *bytes.Reader }

func (t *tapeReader) Read(p []byte) (int, error)       { return t.r.Read(p) }
func (*tapeReader) Write([]byte) (int, error)          { return 0, errors.ErrUnsupported }
func (*tapeReader) Close() error                       { return nil }
func (*tapeReader) LocalAddr() net.Addr                { return nil }
func (*tapeReader) RemoteAddr() net.Addr               { return nil }
func (*tapeReader) SetDeadline(time.Time) error        { return nil }
func (*tapeReader) SetReadDeadline(time.Time) error    { return nil }
func (*tapeReader) SetWriteDeadline(t time.Time) error { return nil }

// TestLinkNumbersOn breaks the connection between two ends again and again, at
// any byte, and wants every message once and in order.
func TestLinkNumbersOn(t *testing.T) {
	const n = 300
	ends := [2]*link{newLink("b"), newLink("a")}
	var came [2][]int
	var mu sync.Mutex
	for i := range n {
		for _, l := range ends {
			if err := l.put(rendezvous.Message{Kind: rendezvous.KindExchange, Epoch: i, Blobs: [][]byte{make([]byte, rand.IntN(5000))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	breaks := 0
	for ; ends[0].pending() || ends[1].pending(); breaks++ {
		if breaks > 10000 {
			t.Fatal("the messages do not arrive")
		}
		a, b := wires(t)
		x, y, errA, errB := shake(t, a, b, testSecret, testSecret)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		x.Conn = &fragile{Conn: a, left: int64(rand.IntN(200_000))}
		got := [2]uint64{ends[0].got(), ends[1].got()}
		var wg sync.WaitGroup
		var broken atomic.Bool
		for i, c := range [2]*secure{x, y} {
			wg.Go(func() {
				_ = ends[i].run(c, got[1-i], func(m rendezvous.Message) {
					mu.Lock()
					came[i] = append(came[i], m.Epoch)
					mu.Unlock()
				})
				broken.Store(true)
			})
		}
		wg.Go(func() { // nothing breaks a connection over which all is said
			for end := time.Now().Add(10 * time.Second); (ends[0].pending() || ends[1].pending()) && !broken.Load() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			_ = a.Close()
		})
		wg.Wait()
	}
	if breaks < 5 {
		t.Errorf("only %d connections", breaks)
	}
	for i := range came {
		for k, e := range came[i] {
			if e != k {
				t.Fatalf("end %d: message %d came as number %d", i, e, k)
			}
		}
		if len(came[i]) != n {
			t.Errorf("end %d: %d messages came, want %d", i, len(came[i]), n)
		}
	}
}

// A message that came over a connection that broke, after the other end had been told over the
// next one what had come, is acknowledged, too.
func TestLateOverTheLastConnection(t *testing.T) {
	a, b := wires(t)
	x, y, errA, errB := shake(t, a, b, testSecret, testSecret)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	from, to := newLink("b"), newLink("a")
	if err := from.put(rendezvous.Message{Kind: rendezvous.KindEnd}); err != nil {
		t.Fatal(err)
	}
	told := to.got()
	came := 0
	take := func(rendezvous.Message) { came++ }
	if err := to.receive(frame{kind: frameMessage, number: 1, text: from.queue[0]}, take); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = to.run(y, 0, take) })
	wg.Go(func() { _ = from.run(x, told, take) })
	for end := time.Now().Add(arrives / 6); from.pending() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if from.pending() {
		t.Error("it is not acknowledged")
	}
	from.close()
	to.close()
	wg.Wait()
	if came != 1 {
		t.Errorf("it came %d times", came)
	}
}

// fragile breaks after it has written so many bytes.
type fragile struct {
	net.Conn
	left int64
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.left -= int64(len(b)); f.left < 0 {
		_, _ = f.Conn.Write(b[:len(b)/2])
		return 0, errors.Join(errors.New("broken by the test"), f.Conn.Close())
	}
	return f.Conn.Write(b)
}

// TestSlowNetwork sends eight messages of 250 KB over a network that takes two
// seconds for them: each goes over it once.
func TestSlowNetwork(t *testing.T) {
	a, b := wires(t)
	x, y, errA, errB := shake(t, a, b, testSecret, testSecret)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	const n, size = 8, 250_000
	slow := &slow{Conn: a}
	x.Conn = slow
	from, to := newLink("b"), newLink("a")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { _ = from.run(x, 0, func(rendezvous.Message) {}) })
	wg.Go(func() {
		count := 0
		_ = to.run(y, 0, func(m rendezvous.Message) {
			if m.Seq != uint64(count) || len(m.Blobs) != 1 || len(m.Blobs[0]) != size {
				t.Errorf("message %d came as %d with %d blobs", m.Seq, count, len(m.Blobs))
			}
			if count++; count == n {
				close(done)
			}
		})
	})
	for i := range n {
		if err := from.put(rendezvous.Message{Kind: rendezvous.KindExchange, Seq: uint64(i), Blobs: [][]byte{make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(arrives):
		t.Error("the messages did not come")
	}
	from.close()
	to.close()
	wg.Wait()
	if sent := slow.sent.Load(); sent > n*size*11/10 {
		t.Errorf("%d bytes were sent for %d", sent, n*size)
	}
}

// slow takes a microsecond for each byte.
type slow struct {
	net.Conn
	sent atomic.Int64
}

func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Microsecond)
	s.sent.Add(int64(len(b)))
	return s.Conn.Write(b)
}

// A frame that is no message of ours ends the connection, and no more.
func TestLinkRefuses(t *testing.T) {
	for name, frames := range map[string][]frame{
		"unknown":  {{kind: '?'}},
		"no text":  {{kind: frameMessage, number: 1}},
		"left out": {{kind: frameMessage, number: 2, text: []byte("x")}},
	} {
		a, b := wires(t)
		x, y, errA, errB := shake(t, a, b, testSecret, testSecret)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for _, f := range frames {
			if _, err := x.Write(f.encode()); err != nil {
				t.Fatal(err)
			}
		}
		l := newLink("x")
		if err := l.run(y, 0, func(m rendezvous.Message) { t.Errorf("%s: %v came", name, m) }); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := fmt.Sprint(l.got(), l.connected()); got != "0 false" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
