package host

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrowd has all ranks of a large world connect before any of them says who it is, as
// they have where the leader comes last: none makes room for another.
func TestCrowd(t *testing.T) {
	const ranks = silent + 64
	ln := testListener(t, "tcp4")
	var want []call
	for r := range ranks {
		want = append(want, call{forControl, r + 1})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		got, err := testIdentity(0, "job", "the right key").accept(ctx, ln, want, quiet)
		closeAll(got)
		done <- err
	}()
	conns := make([]net.Conn, ranks)
	for r := range conns {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
		conns[r] = c
	}
	refused, last := 0, error(nil)
	for r := ranks - 1; r >= 0; r-- { // the last is answered when all have been taken in
		if err := testIdentity(r+1, "job", "the right key").greet(conns[r], call{forControl, 0}); err != nil {
			refused, last = refused+1, err
		}
	}
	if refused > 0 {
		t.Errorf("of %d ranks %d were turned away: %v", ranks, refused, last)
		cancel()
	}
	if err := <-done; err != nil && refused == 0 {
		t.Error(err)
	}
}

// full is a listener without a descriptor for one more connection.
type full struct{ net.Listener }

func (f full) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: f.Addr(), Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

// TestTooFewDescriptors: a rank that may not take in the others says why, and does not say
// that they have not come. Neither does one that also dials.
func TestTooFewDescriptors(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "too many open files: allow every rank more of them (ulimit -n)") || strings.Contains(err.Error(), "[2]") || strings.Contains(err.Error(), "rank 0") {
			t.Errorf("got %v, want an error that says that too many files are open, and names no other rank", err)
		}
	}
	ln := testListener(t, "tcp4")
	me := testIdentity(1, "job", "the right key")
	_, err := me.accept(t.Context(), full{ln}, []call{{forControl, 2}}, quiet)
	check(err)
	silentLeader := testListener(t, "tcp4") // its queue takes connections, but it never answers
	defer shut(t, silentLeader)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, errors.New("it went on waiting"))
	defer cancel()
	addrs := []string{silentLeader.Addr().String(), ln.Addr().String(), ""}
	_, err = connectMesh(ctx, me, newTopology(1, []string{"a", "b", "c"}), full{testListener(t, "tcp4")}, addrs, nil, Config{}, company{}, quiet)
	check(err)
}

// ending is a context that ends when it is asked whether it has, which a rank does after a
// pause: just before the answer, or after it, so in the call that follows, or later than its
// deadline, as timers do.
type ending struct {
	context.Context
	when  string
	end   func()
	asked *bool
}

func (e ending) Err() error {
	if e.when == "in a pause" {
		e.end()
	}
	err := e.Context.Err()
	if e.when == "in a call" {
		e.end()
	}
	*e.asked = true
	return err
}

func (e ending) Deadline() (time.Time, bool) {
	if e.when != "at its deadline" || !*e.asked {
		return time.Time{}, false
	}
	time.AfterFunc(10*time.Millisecond, e.end)
	return time.Now().Add(-time.Second), true
}

// TestQueue has more ranks connect than the leader's queue takes, which the kernel bounds
// (net.core.somaxconn): they wait until it has room, or their time is over.
func TestQueue(t *testing.T) {
	const ranks, most = 12, 2
	ln := testListener(t, "unixpacket")
	raw, err := ln.(*net.UnixListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if controlErr := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), most) }); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	addr := ln.Addr().String()
	for { // until nobody gets in
		c, err := net.Dial("unixpacket", addr)
		if errors.Is(err, syscall.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
	}
	over := errors.New("the time is over")
	for _, when := range []string{"in a pause", "in a call", "at its deadline"} {
		ctx, end := context.WithCancelCause(t.Context())
		_, err = testIdentity(1, "job", "the right key").dial(ending{ctx, when, func() { end(over) }, new(bool)}, "unixpacket", addr, call{forLocal, 0})
		if !errors.Is(err, over) || !strings.Contains(err.Error(), "net.core.somaxconn") {
			t.Errorf("%s: got %v, want an error that says that the queue was full until the time was over", when, err)
		}
	}
	var want []call
	var dialing sync.WaitGroup
	for r := 1; r <= ranks; r++ {
		want = append(want, call{forLocal, r})
		dialing.Go(func() {
			c, err := testIdentity(r, "job", "the right key").dial(t.Context(), "unixpacket", addr, call{forLocal, 0})
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			shut(t, c)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := testIdentity(0, "job", "the right key").accept(ctx, ln, want, quiet)
	if err != nil {
		t.Error(err)
	}
	closeAll(got)
	dialing.Wait()
}

// TestNoPath: a host to which there is no path, as the kernel says for a moment after its
// cable is back, is tried again, for a while.
func TestNoPath(t *testing.T) {
	for _, c := range []struct {
		fails int // dials, each after a second
		err   error
		want  error
	}{
		{3, syscall.EHOSTUNREACH, nil},
		{3, syscall.ENETUNREACH, nil},
		{1000, syscall.EHOSTUNREACH, syscall.EHOSTUNREACH},
		{3, syscall.ECONNREFUSED, syscall.ECONNREFUSED},
	} {
		synctest.Test(t, func(t *testing.T) {
			fails, begin := c.fails, time.Now()
			_, err := persist(t.Context(), func() (net.Conn, error) {
				time.Sleep(time.Second)
				if fails--; fails >= 0 {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", c.err)}
				}
				return nil, nil
			})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%d dials failed with %v: got %v, want %v", c.fails, c.err, err, c.want)
			}
			if took := time.Since(begin); took > pathLimit+2*time.Second {
				t.Errorf("%d dials failed with %v: it took %v", c.fails, c.err, took)
			}
		})
	}
}

// hasty is a context that says that it is over before it begins what AfterFunc has been
// given, as any may.
type hasty struct {
	context.Context
	over chan struct{}
}

func (h hasty) Done() <-chan struct{}              { return h.over }
func (h hasty) AfterFunc(func()) (end func() bool) { return func() bool { return true } }

// TestToldWhy: a rank that finds its leader gone says why, if it is told in time.
func TestToldWhy(t *testing.T) {
	why := errors.New("rank 0: too many open files")
	me, want := testIdentity(1, "job", "the right key"), call{forLocal, 0}
	for _, how := range []string{"hangs up", "refuses", "hangs up before it shares memory"} {
		t.Run(how, func(t *testing.T) {
			ln := testListener(t, "unixpacket")
			defer shut(t, ln)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			told := hasty{ctx, make(chan struct{})}
			if how == "refuses" {
				shut(t, ln)
			}
			go func() {
				if c, err := ln.Accept(); err == nil {
					if how == "hangs up before it shares memory" {
						_, err = testIdentity(0, "job", "the right key").answer(c)
					}
					_ = errors.Join(err, c.Close()) // the test is about who sees it
				}
				time.Sleep(20 * time.Millisecond) // it waits a second for it
				cancel(why)
				close(told.over)
			}()
			c, err := me.dial(told, "unixpacket", ln.Addr().String(), want)
			if err == nil {
				defer shut(t, c)
				p := peers{topo: newTopology(1, []string{"a", "a"}), star: &star{conns: []*net.UnixConn{c.(*net.UnixConn)}}}
				_, err = p.receiveArena(told, pageSize)
			}
			if !errors.Is(err, why) {
				t.Errorf("got %v, want what was told", err)
			}
		})
	}
}
