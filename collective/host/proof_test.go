package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentDialer: who connects and says nothing, or not enough, is turned away in the end.
func TestSilentDialer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		me := testIdentity(0, "job", "the key")
		for _, says := range []int{0, 10, helloBytes} {
			far, near := net.Pipe()
			mine := me.hello(forData)
			go func() {
				_, _ = far.Write(mine[:says])
				_, _ = io.Copy(io.Discard, far) // and listens
			}()
			began := time.Now()
			if _, err := me.answer(near); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != handshakeLimit {
				t.Errorf("who says %d bytes is turned away after %v with %v, want %v", says, time.Since(began), err, handshakeLimit)
			}
			shut(t, near)
			shut(t, far)
		}
	})
}

// TestHalfAWorld: who has connected to a listener that then gives up, as others do not come,
// is told so by the end of the connection.
func TestHalfAWorld(t *testing.T) {
	ln := testListener(t, "tcp4")
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("rank 2 does not come")
	ended := make(chan error, 1)
	go func() {
		_, err := testIdentity(0, "job", "the key").accept(ctx, ln, []call{{forData, 1}, {forData, 2}}, slog.New(slog.DiscardHandler))
		ended <- err
	}()
	ends := make(chan error, 2)
	for range 2 { // of which one is refused once the other has been taken in
		c, err := testIdentity(1, "job", "the key").dial(t.Context(), "tcp4", ln.Addr().String(), call{forData, 0})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := c.Read(make([]byte, 1))
			ends <- err
		}()
	}
	if err := <-ends; err == nil {
		t.Error("who is refused was told something")
	}
	cancel(late)
	if err := <-ended; !errors.Is(err, late) || !strings.Contains(err.Error(), "for rank [2] to connect") {
		t.Errorf("the listener gives up with %v", err)
	}
	if err := <-ends; !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("who has come reads %v, want the end", err)
	}
}

// TestManyNewcomers: a world of more ranks than strangers are kept is taken in though all
// connect before the first has said anything; and who has said a hello of this job, and not
// yet proved it, does not make room for as many strangers as come.
func TestManyNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := pipes{make(chan net.Conn), make(chan struct{})}
		me, first := testIdentity(0, "job", "the key"), testIdentity(1, "job", "the key")
		var want []call
		for r := range silent + 50 {
			want = append(want, call{forData, 1 + r})
		}
		done := make(chan error, 1)
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		go func() {
			got, err := me.accept(ctx, ln, want, quiet)
			closeAll(got)
			done <- err
		}()
		ranks := make([]net.Conn, len(want))
		for i := range ranks {
			ranks[i] = ln.dial()
		}
		mine := first.hello(forData)
		_, err := ranks[0].Write(mine[:])
		reply := make([]byte, helloBytes+sha256.Size)
		if _, readErr := io.ReadFull(ranks[0], reply); err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		greeted := make(chan error, len(want))
		for i, c := range ranks[1:] {
			go func() { greeted <- testIdentity(2+i, "job", "the key").greet(c, call{forData, 0}) }()
		}
		for range ranks[1:] {
			if err := <-greeted; err != nil {
				t.Fatalf("a rank of a large world is turned away: %v", err)
			}
		}
		for range silent + len(want) {
			defer shut(t, ln.dial())
		}
		if _, err := ranks[0].Write(first.mac(byDialer, mine, hello(reply[:helloBytes]))); err != nil {
			t.Errorf("who has said its hello makes room for strangers: %v", err)
			giveUp()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, c := range ranks {
			shut(t, c)
		}
	})
}

// pipes is a listener without a network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) dial() net.Conn {
	far, near := net.Pipe()
	p.conns <- near
	return far
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestRefusedListener: who dials and does not believe the other end hangs up.
func TestRefusedListener(t *testing.T) {
	ln := testListener(t, "tcp4")
	defer shut(t, ln)
	dialed := make(chan error, 1)
	go func() {
		_, err := testIdentity(1, "job", "the key").dial(t.Context(), "tcp4", ln.Addr().String(), call{forData, 0})
		dialed <- err
	}()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, c)
	if _, err := c.Write(make([]byte, helloBytes+sha256.Size)); err != nil {
		t.Fatal(err)
	}
	if err := <-dialed; !errors.Is(err, errStranger) {
		t.Errorf("the dialer got %v, want errStranger", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the dialer has not closed the connection")
	}
}

// TestReflection: the listener's proof of the key, sent back to it, is none of the dialer's.
func TestReflection(t *testing.T) {
	me, stranger := testIdentity(0, "job", "the key"), testIdentity(1, "job", "no key")
	far, near := connected(t)
	defer shut(t, near)
	answered := make(chan error, 1)
	go func() {
		_, err := me.answer(near)
		answered <- err
	}()
	mine := stranger.hello(forData)
	if _, err := far.Write(mine[:]); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, helloBytes+sha256.Size)
	if _, err := io.ReadFull(far, reply); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Write(reply[helloBytes:]); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, errStranger) {
		t.Errorf("who sends the listener's proof back gets %v, want errStranger", err)
	}
}

// TestReplayedAnswer: what a listener has once said proves nothing to another dialer.
func TestReplayedAnswer(t *testing.T) {
	me, peer := testIdentity(0, "job", "the key"), testIdentity(1, "job", "the key")
	var said []byte
	for _, listener := range []string{"true", "false"} {
		far, near := connected(t)
		defer shut(t, near)
		greeted := make(chan error, 1)
		go func() { greeted <- peer.greet(near, call{forData, 0}) }()
		heard := make([]byte, helloBytes)
		if _, err := io.ReadFull(far, heard); err != nil {
			t.Fatal(err)
		}
		if listener == "true" {
			mine := me.hello(forData)
			said = append(mine[:], me.mac(byListener, hello(heard), mine)...)
		}
		if _, err := far.Write(said); err != nil {
			t.Fatal(err)
		}
		if err := <-greeted; (err == nil) != (listener == "true") || err != nil && !errors.Is(err, errStranger) {
			t.Errorf("a dialer that meets a %s listener gets %v", listener, err)
		}
	}
}
