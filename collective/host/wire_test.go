package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/collective"
)

func testIdentity(rank int, job, key string) identity {
	return identity{rank: rank, job: sha256.Sum256([]byte(job)), key: []byte(key)}
}

// TestStrangers lets everybody but the expected rank connect, then that rank.
func TestStrangers(t *testing.T) {
	for _, network := range []string{"tcp4", "tcp6", "unixpacket"} {
		t.Run(network, func(t *testing.T) {
			ln := testListener(t, network)
			addr := ln.Addr().String()
			me := testIdentity(0, "job", "the right key")
			want := call{forData, 3}
			type result struct {
				got map[call]net.Conn
				err error
			}
			done := make(chan result, 1)
			go func() {
				got, err := me.accept(t.Context(), ln, []call{want}, slog.New(slog.DiscardHandler))
				done <- result{got, err}
			}()
			dialTo := call{forData, 0}
			for name, id := range map[string]identity{
				"key": testIdentity(3, "job", "the wrong key"),
				"job": testIdentity(3, "another job", "the right key"),
			} {
				if c, err := id.dial(t.Context(), network, addr, dialTo); err == nil {
					shut(t, c)
					t.Errorf("a stranger with another %s got in", name)
				}
			}
			// Right in all, but nobody expects rank 4: turned away after the handshake.
			if c, err := testIdentity(4, "job", "the right key").dial(t.Context(), network, addr, dialTo); err == nil {
				if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
					t.Error(err)
				}
				if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("an unexpected rank was let in: %v", err)
				}
				shut(t, c)
			}
			for _, junk := range [][]byte{nil, []byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0xff}, 200)} {
				c, err := net.Dial(network, addr)
				if err != nil {
					t.Fatal(err)
				}
				defer shut(t, c) // and stay connected meanwhile
				if junk == nil {
					continue
				}
				if _, err := c.Write(junk); err != nil {
					t.Error(err)
				}
			}
			// A listener that answers with another rank than the dialer wants.
			if c, err := testIdentity(3, "job", "the right key").dial(t.Context(), network, addr, call{forData, 7}); err == nil {
				shut(t, c)
				t.Error("the dialer took rank 0 for rank 7")
			}
			c, err := testIdentity(3, "job", "the right key").dial(t.Context(), network, addr, dialTo)
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, c)
			r := <-done
			if r.err != nil || len(r.got) != 1 || r.got[want] == nil {
				t.Fatalf("got %v, %v, want the connection of rank 3", r.got, r.err)
			}
			shut(t, r.got[want])
			if c, err := net.Dial(network, addr); err == nil {
				shut(t, c)
				t.Error("it still listens after all have come")
			}
		})
	}
}

func testListener(t *testing.T, network string) net.Listener {
	t.Helper()
	if network == "unixpacket" {
		ln, err := listenLocal()
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	ln, err := net.Listen(network, map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network])
	if err != nil && network == "tcp6" {
		t.Skipf("no IPv6 on this machine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// shut closes c.
func shut(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// Who dials is patient: the listener may wait for a late rank of its own host first. And the
// limit of a handshake ends with it.
func TestLateListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		me, peer := testIdentity(0, "job", "the key"), testIdentity(1, "job", "the key")
		here, there := net.Pipe()
		var answering sync.WaitGroup
		answering.Go(func() {
			time.Sleep(6 * handshakeLimit)
			if got, err := me.answer(there); err != nil || got != (call{forData, 1}) {
				t.Errorf("the listener got %v, %v", got, err)
			}
			if _, err := there.Read(make([]byte, 1)); err != nil {
				t.Errorf("what comes long after the handshake is not read: %v", err)
			}
		})
		if err := peer.greet(here, call{forData, 0}); err != nil {
			t.Error(err)
			shut(t, here)
		}
		time.Sleep(2 * handshakeLimit)
		if _, err := here.Write([]byte{0}); err != nil {
			t.Error(err)
		}
		answering.Wait()
		shut(t, here)
		shut(t, there)
	})
}

// TestReplay sends a recorded handshake again.
func TestReplay(t *testing.T) {
	me, peer := testIdentity(0, "job", "the key"), testIdentity(1, "job", "the key")
	ln := testListener(t, "tcp4")
	defer shut(t, ln)
	conns := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	var tape bytes.Buffer
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, c)
	greeted := make(chan error)
	go func() { greeted <- peer.greet(recorder{c, &tape}, call{forData, 0}) }()
	first := <-conns
	defer shut(t, first)
	if got, err := me.answer(first); err != nil || got != (call{forData, 1}) {
		t.Fatalf("got %v, %v", got, err)
	}
	if err := <-greeted; err != nil {
		t.Fatal(err)
	}
	again, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, again)
	if _, err := again.Write(tape.Bytes()); err != nil {
		t.Fatal(err)
	}
	second := <-conns
	defer shut(t, second)
	if got, err := me.answer(second); !errors.Is(err, errStranger) {
		t.Errorf("a replay got %v, %v, want errStranger", got, err)
	}
}

type recorder struct {
	net.Conn
	tape *bytes.Buffer
}

func (r recorder) Write(b []byte) (int, error) {
	r.tape.Write(b)
	return r.Conn.Write(b)
}

func FuzzHeader(f *testing.F) {
	var b [headerBytes]byte
	h := headerOf(7, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf([]float32{1})})
	named{h, labelOf("label")}.encode(&b)
	f.Add(b[:])
	f.Add(make([]byte, headerBytes))
	f.Fuzz(func(t *testing.T, in []byte) {
		var b, back [headerBytes]byte
		copy(b[:], in)
		h, err := decodeHeader(&b)
		if err != nil {
			return
		}
		_ = h.String()
		if h.encode(&back); back != b {
			t.Errorf("%x decodes and encodes to %x", b, back)
		}
	})
}

// TestHeaderOf: what a kind does not look at is no difference between two ranks; all that it
// looks at is.
func TestHeaderOf(t *testing.T) {
	x := collective.VecOf([]float32{1, 2})
	full := collective.Request{Op: collective.Max, Root: 1, Vec: x}
	for kind, counts := range map[collective.Kind]struct{ op, root, vec bool }{
		collective.Barrier: {}, collective.AllReduce: {op: true, vec: true}, collective.ReduceScatter: {op: true, vec: true},
		collective.AllGather: {vec: true}, collective.Broadcast: {root: true, vec: true},
	} {
		full.Kind = kind
		op, root, length, dtype := full, full, full, full
		op.Op, root.Root, length.Vec, dtype.Vec = collective.Min, 0, x.Slice(0, 1), x.As(collective.I32)
		for _, c := range []struct {
			what   string
			other  collective.Request
			counts bool
		}{{"op", op, counts.op}, {"root", root, counts.root}, {"length", length, counts.vec}, {"type", dtype, counts.vec}} {
			if differs := headerOf(7, full) != headerOf(7, c.other); differs != c.counts {
				t.Errorf("another %s of a %s is a difference: %v", c.what, kind, differs)
			}
		}
		if headerOf(7, full) == headerOf(8, full) {
			t.Errorf("the next %s is the same", kind)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(record{codePeerLost, 1, -1, "text"}.encode())
	f.Add([]byte(recordMagic))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := decodeRecord(in)
		if err != nil {
			return
		}
		if back := r.encode(); !bytes.Equal(back, in) {
			t.Errorf("%x decodes and encodes to %x", in, back)
		}
	})
}

func FuzzHello(f *testing.F) {
	id := testIdentity(3, "job", "key")
	h := id.hello(forData)
	f.Add(h[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		var h hello
		copy(h[:], in)
		got, err := id.read(h)
		if err == nil && (got.rank < 0 || [32]byte(h[9:41]) != id.job) {
			t.Errorf("%x was read as %v", h, got)
		}
	})
}

// TestRecordText cuts what does not fit and repairs what is not UTF-8.
func TestRecordText(t *testing.T) {
	for name, text := range map[string]string{
		"long": strings.Repeat("é", 5000), "invalid": "a\xffb", "empty": "", "edge": strings.Repeat("x", maxRecord-recordHead),
	} {
		r, err := decodeRecord(record{codeAborted, 2, -1, text}.encode())
		if err != nil || r.rank != 2 || r.peer != -1 {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
		if name == "edge" && r.text != text {
			t.Errorf("%s: got %d bytes, want %d", name, len(r.text), len(text))
		}
	}
}

// TestControl reads what may come over a control connection.
func TestControl(t *testing.T) {
	good := record{codePeerLost, 4, 2, "text"}
	enc := good.encode()
	for _, test := range []struct {
		name string
		in   []byte
		want error // nil: the good record; errAny: any error
	}{
		{"abort", append([]byte{controlAbort, byte(len(enc)), 0}, enc...), nil},
		{"farewell", []byte{controlFarewell}, errFarewell},
		{"unknown", []byte{'?'}, nil},
		{"too_long", []byte{controlAbort, 0xff, 0xff}, errRecord},
		{"cut", append([]byte{controlAbort, byte(len(enc)), 0}, enc[:5]...), nil},
		{"no_record", []byte{controlAbort, 3, 0, 'x', 'y', 'z'}, errRecord},
	} {
		a, b := net.Pipe()
		written := make(chan error)
		go func() {
			_, err := b.Write(test.in)
			written <- errors.Join(err, b.Close())
		}()
		r, err := (&link{control: a}).listen()
		switch {
		case test.name == "abort" && (err != nil || r != good):
			t.Errorf("%s: got %v, %v", test.name, r, err)
		case test.name != "abort" && err == nil:
			t.Errorf("%s: got %v, want an error", test.name, r)
		case test.want != nil && !errors.Is(err, test.want):
			t.Errorf("%s: got error %v, want %v", test.name, err, test.want)
		}
		shut(t, a)
		if err := <-written; err != nil && test.want == nil && test.name == "abort" {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestTopology(t *testing.T) {
	top := newTopology(3, []string{"b", "a", "b", "a", "c"})
	if got, want := top.hosts, [][]int{{0, 2}, {1, 3}, {4}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("hosts: got %v, want %v", got, want)
	}
	if top.host != 1 || top.local != 1 || top.leader() != 1 || top.leads() {
		t.Errorf("got %+v", top)
	}
	if want := []int{0, 2, 1, 3, 4}; !slices.Equal(top.position, want) {
		t.Errorf("positions: got %v, want %v", top.position, want)
	}
	var scratch netScratch
	for range 2 {
		if got, want := scratch.byRanks(top, 10), []int{0, 20, 40, 50}; !slices.Equal(got, want) {
			t.Errorf("bounds by ranks: got %v, want %v", got, want)
		}
	}
}

func TestInZone(t *testing.T) {
	for _, c := range []struct{ addr, own, want string }{
		{"[fe80::2%eth0]:7", "fe80::1%ib0", "[fe80::2%ib0]:7"},
		{"[fe80::2]:7", "fe80::1%ib0", "[fe80::2%ib0]:7"},
		{"[fd00::2]:7", "fe80::1%ib0", "[fd00::2]:7"},
		{"10.9.0.2:7", "10.9.0.1", "10.9.0.2:7"},
		{"[fe80::2%eth0]:7", "10.9.0.1", "[fe80::2%eth0]:7"},
	} {
		if got := inZone(c.addr, c.own); got != c.want {
			t.Errorf("%s as seen from %s is %s, want %s", c.addr, c.own, got, c.want)
		}
	}
}

// TestGiveUp: a buffer that was posted and given up is not written to, whatever
// comes: it may be the memory of a caller who has had an error.
func TestGiveUp(t *testing.T) {
	for name, carry := range map[string]func(near net.Conn) carrier{
		"threads": func(near net.Conn) carrier {
			return newThreads([]*link{nil, {rank: 1}}, []net.Conn{nil, near})
		},
		"pump": func(near net.Conn) carrier {
			w, err := newWire(near)
			if err != nil {
				t.Fatal(err)
			}
			return newPump([]*link{nil, {rank: 1}}, []*wire{nil, w}, newCourtesy(company{ranks: 2, process: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			far, near := connected(t)
			c := carry(near)
			over := make(chan struct{})
			go func() { c.fill(1); close(over) }()
			first, second := make([]byte, 4), make([]byte, 4)
			c.post(1, first)
			c.post(1, second)
			if _, err := far.Write([]byte("early!")); err != nil {
				t.Fatal(err)
			}
			if err := c.wait(t.Context(), 1); err != nil || string(first) != "earl" {
				t.Errorf("the first buffer has %q, %v", first, err)
			}
			c.giveUp()
			held := string(second)
			if _, err := far.Write([]byte("late")); err != nil {
				t.Fatal(err)
			}
			c.over()
			<-over
			var link *linkError
			if _, err := c.read(t.Context(), 1, second, 1); !errors.As(err, &link) {
				t.Errorf("a read after all was given up ended with %v, want a linkError", err)
			}
			if string(second) != held {
				t.Errorf("the buffer that was given up has become %q", second)
			}
			shut(t, closer(c.close))
		})
	}
}

// TestDeadHostIsFound: the kernel looks after connections between hosts, whoever reads them: of
// one that is silent it asks whether the other end is there, and it waits for nothing with what is
// small. It gives up what is not acknowledged where the other end always reads, and only there.
func TestDeadHostIsFound(t *testing.T) {
	for name, limit := range map[string]time.Duration{"data": 0, "control": unacknowledged} {
		_, near := connected(t)
		if err := tune(near); err != nil {
			t.Fatal(err)
		}
		if name == "control" {
			if err := limitSilence(near, limit); err != nil {
				t.Fatal(err)
			}
		}
		w, err := newWire(near)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, closer(w.close))
		for _, o := range []struct{ level, opt, want int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 10}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds())}, {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
		} {
			if got, err := unix.GetsockoptInt(w.fd, o.level, o.opt); err != nil || got != o.want {
				t.Errorf("%s: option %d of level %d is %d, %v, want %d", name, o.opt, o.level, got, err, o.want)
			}
		}
	}
}

// connected are the ends of a connection.
func connected(t *testing.T) (far, near net.Conn) {
	t.Helper()
	ln := testListener(t, "tcp4")
	defer shut(t, ln)
	far, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, far) })
	if near, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, near) })
	return far, near
}

type closer func() error

func (c closer) Close() error { return c() }
