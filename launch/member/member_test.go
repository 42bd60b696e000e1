package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/launch/rendezvous"
)

const (
	// arrives is how long the tests wait for what must come: only what never comes takes
	// longer, also on a machine that stands still now and then.
	arrives = time.Minute
	// answerWait is mostly enough for all who are asked to have answered once.
	answerWait = time.Second
)

func open1(t *testing.T, c Config) *Member {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	if c.Key == nil {
		c.Key = bytes.Repeat([]byte{7}, 32)
	}
	if c.Wait == 0 {
		c.Wait = arrives
	}
	m, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.ctx.Err() == nil {
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
	case <-time.After(arrives):
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

// An abort arrives without the link, too, in a packet, which may be lost: so it is sent
// again. One that is too long for a packet, and other messages, do not.
func TestAbortWithoutLink(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.awaitPlace(t, "b")
	a.link("b").close()
	abort := func(text string) rendezvous.Message {
		return rendezvous.Message{Kind: rendezvous.KindAbort, Cause: &rendezvous.Cause{Text: text}}
	}
	for range 3 {
		a.Send("b", rendezvous.Message{Kind: rendezvous.KindEnd})
		a.Send("b", abort(strings.Repeat("x", maxAbort)))
	}
	a.Send("b", rendezvous.Message{Kind: rendezvous.KindEnd})
	for end := time.Now().Add(arrives); ; {
		select {
		case in := <-b.Inbox():
			if in.From != "a" || in.Msg.Kind != rendezvous.KindAbort || in.Msg.Cause.Error() != "why" {
				t.Errorf("got %v of %s: %v", in.Msg.Kind, in.From, in.Msg.Cause)
			}
		case <-time.After(100 * time.Millisecond): // for what is not to arrive, at first
			if time.Now().Before(end) {
				a.Send("b", abort("why"))
				continue
			}
			t.Error("nothing arrived")
		}
		return
	}
}

// A hint arrives, at the coordinator if nobody is named, or is lost: so it is given again.
func TestHint(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	for to, at := range map[string]*Member{"": a, "b": b} {
		from := map[*Member]*Member{a: b, b: a}[at]
		from.awaitPlace(t, at.cfg.Name)
		for end := time.Now().Add(arrives); ; {
			from.Hint(to, rendezvous.Message{Kind: rendezvous.KindVitals, Epoch: 3})
			select {
			case in := <-at.Inbox():
				if in.From != from.cfg.Name || in.Msg.Kind != rendezvous.KindVitals || in.Msg.Epoch != 3 {
					t.Errorf("got %+v", in)
				}
			case <-time.After(50 * time.Millisecond):
				if time.Now().Before(end) {
					continue
				}
				t.Errorf("to %q: nothing arrived", to)
			}
			break
		}
	}
}

// TestOtherJobs: an abort that is gossiped by a launcher which is not of this job, though it has
// the key and the label, is nobody's.
func TestOtherJobs(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	body := []byte(`{"kind":"abort","cause":{"kind":"stopped","rank":-1,"text":"of another job"}}`)
	for _, m := range []*Member{a, b} {
		p, err := json.Marshal(packet{From: "x", Msg: body})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.accept(p); err == nil || !strings.Contains(err.Error(), "x, which has no link") {
			t.Errorf("got %v", err)
		}
		p, err = json.Marshal(packet{From: map[*Member]string{a: "b", b: "a"}[m], Msg: body})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.accept(p); err != nil {
			t.Errorf("of the other: %v", err)
		}
		if in := next(t, m); in.Msg.Kind != rendezvous.KindAbort || in.From == "x" {
			t.Errorf("got %+v", in)
		}
	}
}

// Who has another key or label is told so at once, and reaches nobody; the
// coordinator counts it.
func TestStranger(t *testing.T) {
	for name, c := range map[string]struct {
		Config
		says string
	}{
		"key":   {Config{Key: bytes.Repeat([]byte{8}, 32)}, "node 0 answered at %s, but the key differs: "},
		"label": {Config{Key: bytes.Repeat([]byte{7}, 32), Label: "another"}, "node 0 answered at %s, but the name of the job differs: "},
	} {
		t.Run(name, func(t *testing.T) {
			a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
			var log strings.Builder
			a.foreign.log = slog.New(slog.NewTextHandler(&log, nil))
			c.Name, c.Endpoint, c.Wait, c.Log = "x", fmt.Sprintf("127.0.0.1:%d", a.Port()), time.Hour, a.cfg.Log
			for range 3 {
				x, err := Open(t.Context(), c.Config)
				if err == nil {
					t.Fatal(errors.Join(errors.New("the stranger was let in"), x.Close()))
				}
				if want := fmt.Sprintf(c.says, c.Endpoint); !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %q, want %q", err, want)
				}
			}
			if n := a.list.NumMembers(); n != 1 {
				t.Errorf("%d members, want the coordinator alone", n)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
			if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "so_far=3") {
				t.Errorf("want a line for the first and one for the rest, got %s", text)
			}
		})
	}
}

// Nobody there, or a name that nobody knows: it is tried until the time is over.
func TestNobodyAnswers(t *testing.T) {
	for endpoint, says := range map[string]string{"127.0.0.1:1": "connection refused", "no-such-host.invalid:1": "no-such-host.invalid"} {
		refusal(t, Config{Name: "b", Key: bytes.Repeat([]byte{7}, 32), Endpoint: endpoint}, "no coordinator answered at "+endpoint+" within ", says)
	}
}

// refusal is why nobody is joined when the time is over: in one line, with these texts in it. A
// process that stands still has no answer when its time is over: it gets more.
func refusal(t *testing.T, c Config, texts ...string) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	for c.Wait = answerWait; ; c.Wait *= 4 {
		began := time.Now()
		m, err := Open(t.Context(), c)
		if err == nil {
			t.Fatal(errors.Join(errors.New("joined nobody"), m.Close()))
		}
		if waited := time.Since(began); waited < c.Wait/2 {
			t.Errorf("%s: given up after %v", c.Endpoint, waited)
		}
		text := err.Error()
		if !strings.Contains(text, fmt.Sprintf(" within %v (", c.Wait)) || strings.Contains(text, "\n") {
			t.Errorf("got %q", err)
		}
		missing := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return strings.Contains(text, s) })
		if len(missing) == 0 {
			return
		}
		if c.Wait > arrives/4 {
			t.Errorf("want %q in %q", missing, err)
			return
		}
	}
}

// A job that is stopped meanwhile does not wait.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stopped) })
	m, err := Open(ctx, Config{Name: "b", Key: bytes.Repeat([]byte{7}, 32), Endpoint: "127.0.0.1:1", Wait: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Fatal(errors.Join(errors.New("joined nobody"), m.Close()))
	}
	if !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
}

// A launcher that is gone without a word, its port closed, is lost at once to
// both sides; one whose connection breaks is not, and its messages go on.
func TestGone(t *testing.T) {
	for name, first := range map[string]bool{"coordinator": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, "127.0.0.1")
			b.Send("", rendezvous.Message{Kind: rendezvous.KindRegister})
			next(t, a)
			l := b.link("a")
			l.mu.Lock()
			_ = l.conn.Close() // as a network may
			l.mu.Unlock()
			for i := range 5 {
				a.Send("b", rendezvous.Message{Kind: rendezvous.KindEnd, Epoch: i})
				b.Send("a", rendezvous.Message{Kind: rendezvous.KindExchange, Epoch: i})
			}
			for i := range 5 {
				if in := next(t, b); in.Lost || in.Msg.Epoch != i {
					t.Fatalf("message %d: got %+v", i, in)
				}
				if in := next(t, a); in.Lost || in.Msg.Epoch != i {
					t.Fatalf("message %d: got %+v", i, in)
				}
			}
			dead, left, who := b, a, "b"
			if first {
				dead, left, who = a, b, "a"
			}
			if err := dead.end(); err != nil { // as a killed process does: without a farewell
				t.Error(err)
			}
			if in := next(t, left); !in.Lost || in.From != who || in.Coordinator != first {
				t.Errorf("got %+v, want the loss of %s", in, who)
			}
		})
	}
}

// At its end a launcher waits as long as others still take what it has for them, and no
// longer.
func TestSettle(t *testing.T) {
	const gap = closeWait * 6 / 10
	for name, tt := range map[string]struct {
		links, take int // so many of them, one after the other
		want        time.Duration
	}{
		"all, in turn":   {5, 5, 5 * gap},
		"two":            {5, 2, 2*gap + closeWait},
		"none":           {5, 0, closeWait},
		"too many":       {100, 100, closeLimit},
		"nobody to tell": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var links []*link
				for i := range tt.links {
					links = append(links, newLink(strconv.Itoa(i)))
				}
				(&Member{}).settle(closeWait, links, func(l *link) bool {
					i, _ := strconv.Atoi(l.peer)
					return i >= tt.take || time.Since(begun) < time.Duration(i+1)*gap
				})
				if took := time.Since(begun); took < tt.want || took > tt.want+10*time.Millisecond {
					t.Errorf("waited %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// A launcher that stands still when it ends waits for the others all the same.
func TestSettleStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		(&Member{}).settle(closeWait, []*link{newLink("b")}, func(*link) bool {
			if looks++; looks == 1 {
				time.Sleep(closeLimit) // stands still
			}
			return looks < 3 // b takes it soon after
		})
		if looks != 3 {
			t.Errorf("gave up after %d looks, want 3", looks)
		}
	})
}
