package member

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

func open1(t *testing.T, c Config) *Member {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	if c.Key == nil {
		c.Key = bytes.Repeat([]byte{7}, 32)
	}
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !m.isDone() {
			_ = m.Close()
		}
	})
	return m
}

func pair(t *testing.T, host string) (coord, other *Member) {
	coord = open1(t, Config{Name: "a", Coordinator: true, Endpoint: net.JoinHostPort(host, "0")})
	other = open1(t, Config{Name: "b", Endpoint: net.JoinHostPort(coord.Addr(), strconv.Itoa(coord.Port()))})
	return coord, other
}

func next(t *testing.T, m *Member) rendezvous.Inbound {
	t.Helper()
	select {
	case in := <-m.Inbox():
		return in
	case <-time.After(10 * time.Second):
		t.Fatal("nothing arrived")
		return rendezvous.Inbound{}
	}
}

// Messages queued before the coordinator is even known arrive, in order.
func TestOrder(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		t.Run(host, func(t *testing.T) {
			a, b := pair(t, host)
			const n = 50
			for i := range n {
				b.Send("", rendezvous.Message{Kind: rendezvous.KindExchange, Epoch: i, Name: strings.Repeat("x", 100*i)})
			}
			for i := range n {
				if in := next(t, a); in.From != "b" || in.Msg.Epoch != i || len(in.Msg.Name) != 100*i {
					t.Fatalf("message %d: got %v of %s, epoch %d, %d bytes", i, in.Msg.Kind, in.From, in.Msg.Epoch, len(in.Msg.Name))
				}
			}
			a.Send("b", rendezvous.Message{Kind: rendezvous.KindCommit, Epoch: 5})
			if in := next(t, b); in.From != "a" || in.Msg.Kind != rendezvous.KindCommit {
				t.Errorf("got %+v", in)
			}
		})
	}
}

// What was sent before Close arrives, and then the news of the leaving.
func TestCloseDelivers(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
	next(t, a)
	for i := range 20 {
		a.Send("b", rendezvous.Message{Kind: rendezvous.KindEnd, Epoch: i})
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	for i := range 20 {
		if in := next(t, b); in.Lost || in.Msg.Epoch != i {
			t.Fatalf("message %d: got %+v", i, in)
		}
	}
	if in := next(t, b); !in.Lost || in.From != "a" {
		t.Errorf("got %+v, want the loss of a", in)
	}
}

// An abort that is both sent and gossiped arrives at least once, with its cause.
func TestAbortArrives(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
	next(t, a)
	a.Send("b", rendezvous.Message{Kind: rendezvous.KindAbort, Cause: &rendezvous.Cause{Kind: rendezvous.CauseSignal, Rank: 5, Host: "h", Pid: 4, Signal: "SIGSEGV"}})
	if in := next(t, b); in.Msg.Kind != rendezvous.KindAbort || in.Msg.Cause.Error() != "rank 5 (h, pid 4): killed by SIGSEGV" {
		t.Errorf("got %+v", in)
	}
}

// Who has another key or label reaches nobody.
func TestStranger(t *testing.T) {
	for name, c := range map[string]Config{
		"key":   {Key: bytes.Repeat([]byte{8}, 32)},
		"label": {Label: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
			c.Name, c.Endpoint = "x", fmt.Sprintf("127.0.0.1:%d", a.Port())
			x := open1(t, c)
			x.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
			select {
			case in := <-a.Inbox():
				t.Errorf("the stranger's %+v arrived", in)
			case <-time.After(700 * time.Millisecond):
			}
			if n := a.list.NumMembers(); n != 1 {
				t.Errorf("%d members, want the coordinator alone", n)
			}
		})
	}
}

func TestListenAddr(t *testing.T) {
	for _, bad := range []string{"192.0.2.7:1", "nohost", "127.0.0.1:x", "0.0.0.0:1", "[::]:1"} {
		if ip, port, err := listenAddr(true, bad); err == nil {
			t.Errorf("%q was accepted as %v:%d", bad, ip, port)
		}
	}
	ip, port, err := listenAddr(true, "")
	if err != nil || ip == nil || ip.IsUnspecified() || port != 0 {
		t.Errorf("got %v:%d, %v; want one address, not all", ip, port, err)
	}
	if ip, _, err := listenAddr(true, "localhost:1"); err != nil || !ip.IsLoopback() {
		t.Errorf("localhost is %v, %v", ip, err)
	}
}

// What is told every five seconds while nobody answers is one line.
func TestOneLine(t *testing.T) {
	m := open1(t, Config{Name: "b", Endpoint: "127.0.0.1:1"})
	_, err := m.list.Join([]string{"127.0.0.1:1"})
	if err == nil {
		t.Fatal("joined nobody")
	}
	if got := oneLine(err).Error(); strings.Contains(got, "\n") || !strings.Contains(got, "connection refused") {
		t.Errorf("got %q", got)
	}
}
