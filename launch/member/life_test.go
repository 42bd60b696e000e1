package member

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"ebtrain/launch/rendezvous"
)

// line1 is a's end of the life line with the launcher called name.
func (m *Member) line1(t *testing.T, name string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(arrives); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		m.mu.Lock()
		l := m.lives[name]
		if l != nil && l.conn != nil {
			defer m.mu.Unlock()
			return l.conn
		}
		m.mu.Unlock()
	}
	t.Fatalf("no life line with %s", name)
	return nil
}

// connection is what carries a's messages to and from the launcher called name.
func (m *Member) connection(t *testing.T, name string) net.Conn {
	t.Helper()
	l := m.link(name)
	for deadline := time.Now().Add(arrives); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		l.mu.Lock()
		c := l.conn
		l.mu.Unlock()
		if c != nil {
			return c
		}
	}
	t.Fatalf("no connection with %s", name)
	return nil
}

// The kernel closes what a launcher has that is killed, and the others are told that it
// was, once.
func TestKilled(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	line := a.line1(t, "b")
	_ = b.line1(t, "a")
	if err := a.port.tcp.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{a.connection(t, "b"), line} {
		_ = c.Close()
	}
	if in := next(t, b); in.From != "a" || !in.Lost || in.How != rendezvous.Killed || in.Alone {
		t.Errorf("got %+v", in)
	}
}

// A life line that ends, by a reset say, while the link stands and the launcher listens
// was cut by what lies between: nobody is lost, and another takes its place. If nobody
// listens, the launcher was killed, and its link merely has not ended yet.
func TestLifeLineIsCut(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.connection(t, "b"), b.connection(t, "a")
	for _, cut := range []*Member{a, b} {
		ofA, ofB := a.line1(t, "b"), b.line1(t, "a")
		s := map[*Member]net.Conn{a: ofA, b: ofB}[cut].(*secure)
		if err := s.Conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Fatal(err)
		}
		_ = s.Conn.Close()
		for a.line1(t, "b") == ofA || b.line1(t, "a") == ofB {
			time.Sleep(time.Millisecond)
		}
	}
	select {
	case in := <-a.Inbox():
		t.Errorf("a got %+v", in)
	case in := <-b.Inbox():
		t.Errorf("b got %+v", in)
	case <-time.After(2 * verifyLimit):
	}
	if err := a.port.tcp.Close(); err != nil {
		t.Fatal(err)
	}
	line := a.line1(t, "b")
	if _, err := line.Write([]byte{sayAlive}); err != nil { // nothing may have been said over it yet
		t.Fatal(err)
	}
	_ = line.Close()
	if in := next(t, b); in.From != "a" || !in.Lost || in.How != rendezvous.Killed {
		t.Errorf("got %+v of who does not listen any more", in)
	}
}

// A connection that ends before anything was said on it says nothing of the launcher:
// it was refused, or never taken.
func TestRefusedLifeLine(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	here, there := net.Pipe()
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	a.live("b", here, netip.AddrPort{})
	if speaks, lost := a.lifeOf("b"); lost {
		t.Errorf("b is lost, and speaks: %v", speaks)
	}
}

// Who opens another life line has given up the former.
func TestSecondLifeLine(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	var ends [2]net.Conn
	for i := range ends {
		here, there := net.Pipe()
		ends[i] = there
		a.wg.Go(func() { a.live("b", here, netip.AddrPort{}) })
		go func() { _, _ = io.Copy(io.Discard, there) }()
		if _, err := there.Write([]byte{sayAlive}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ends[0].Write([]byte{sayAlive}); err == nil {
		t.Error("the first is still read")
	}
	if _, err := ends[1].Write([]byte{sayAlive}); err != nil {
		t.Errorf("the second: %v", err)
	}
	if _, lost := a.lifeOf("b"); lost {
		t.Error("b is lost")
	}
	if err := ends[1].Close(); err != nil {
		t.Fatal(err)
	}
	if in := next(t, a); in.From != "b" || in.How != rendezvous.Killed {
		t.Errorf("got %+v", in)
	}
}

// Until the job is complete, gossip alone does not call a launcher dead.
func TestGossipBeforeTheJob(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	d := &delegate{m: a}
	dead := &memberlist.Node{Name: "b", State: memberlist.StateDead}
	d.NotifyLeave(dead)
	select {
	case in := <-a.Inbox():
		t.Errorf("got %+v", in)
	case <-time.After(50 * time.Millisecond):
	}
	a.Formed(2)
	d.NotifyLeave(dead)
	if in := next(t, a); in.From != "b" || !in.Lost {
		t.Errorf("got %+v", in)
	}
}

// awaitPlace waits until gossip knows where a launcher is.
func (m *Member) awaitPlace(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(arrives); m.place(name) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not known", name)
		}
	}
}

// A launcher that says something new of itself is written to and asked meanwhile: the
// race detector must find nothing.
func TestNewsOfALauncher(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.awaitPlace(t, "b")
	over := make(chan struct{})
	var all sync.WaitGroup
	for _, do := range []func(){
		func() { a.send("b", packet{From: "a"}) },
		func() { a.ask("b") },
	} {
		all.Go(func() {
			for {
				do()
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	for range 60 {
		_ = b.list.UpdateNode(100 * time.Millisecond) // whether or not all have heard of it by then
	}
	close(over)
	all.Wait()
}

// The coordinator's pulse is everybody's: the others need not know how many they are.
func TestBeat(t *testing.T) {
	for nodes, want := range map[int]time.Duration{0: pulseInterval, 2: pulseInterval, 63: pulseInterval, 128: 4 * pulseInterval, 4096: slowest * pulseInterval} {
		a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0", Nodes: nodes})
		b := open1(t, Config{Name: "b", Endpoint: net.JoinHostPort(a.Addr(), strconv.Itoa(a.Port()))})
		if a.beat() != want || b.beat() != want {
			t.Errorf("%d launchers: %v and %v, want %v", nodes, a.beat(), b.beat(), want)
		}
	}
}

// The later this process is, the longer it asks who is silent; a few seconds after it was
// late, no more.
func TestShortage(t *testing.T) {
	for _, tt := range []struct {
		late []time.Duration // a quarter of strainMemory apart
		want int
	}{
		{nil, 1},
		{[]time.Duration{strain}, 1},
		{[]time.Duration{strain + 1}, patience},
		{[]time.Duration{4 * strain}, 4 * patience},
		{[]time.Duration{4 * strain, 2 * strain}, 4 * patience},
		{[]time.Duration{4 * strain, 0, 0, 0, 2 * strain}, 4 * patience},
		{[]time.Duration{4 * strain, 0, 0, 0, 2 * strain, 0, 0, 0, 0}, 2 * patience},
		{[]time.Duration{4 * strain, 0, 0, 0, 0, 0, 0, 0, 0}, 1},
		{[]time.Duration{time.Minute}, mostPatience},
	} {
		var s shortage
		for i, by := range tt.late {
			s.late(by, time.Unix(0, 0).Add(time.Duration(i)*strainMemory/4))
		}
		if got := s.rounds(); got != tt.want {
			t.Errorf("late by %v: %d rounds, want %d", tt.late, got, tt.want)
		}
	}
	var s shortage
	s.late(time.Second, time.Unix(0, 0))
	s.late(0, time.Unix(0, 0).Add(2*strainMemory))
	if got := s.rounds(); got != 1 {
		t.Errorf("long after: %d rounds", got)
	}
}

// Who leaves in order is not said to have been killed, nor twice to be lost.
func TestLeft(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if in := next(t, b); in.From != "a" || !in.Lost || in.How == rendezvous.Killed {
		t.Errorf("got %+v", in)
	}
	select {
	case in := <-b.Inbox():
		t.Errorf("got also %+v", in)
	case <-time.After(2 * a.silence()):
	}
}

// A silent life line is no verdict as long as the other end answers, or data of
// its ranks arrive.
func TestSilence(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.Formed(2) // or it asks for ten seconds
	vouched := make(chan struct{}, 1)
	a.Vouch(func(name string) bool {
		select {
		case vouched <- struct{}{}:
		default:
		}
		return name == "b"
	})
	a.mu.Lock()
	l := a.lives["b"]
	a.mu.Unlock()
	t.Cleanup(func() { _ = b.end() })         // it need not say farewell
	if err := b.list.Shutdown(); err != nil { // it answers nobody any more
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < 3*a.silence(); time.Sleep(time.Millisecond) {
		a.mu.Lock()
		l.heard = begun.Add(-a.silence()) // nor says anything
		a.mu.Unlock()
	}
	<-vouched
	select {
	case in := <-a.Inbox():
		t.Fatalf("got %+v although its data arrive", in)
	default:
	}
	a.Vouch(func(string) bool { return false })
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			a.mu.Lock()
			l.heard = time.Now().Add(-2 * a.silence())
			a.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	if in := next(t, a); in.From != "b" || !in.Lost || in.How != rendezvous.Mute || in.Alone {
		t.Errorf("got %+v", in)
	}
}

// unplug has m no longer see what the kernel of that launcher's host acknowledges.
func (m *Member) unplug(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives[name].conn = struct{ net.Conn }{m.lives[name].conn}
}

// Whose host's kernel takes what is sent to it is asked for longer than who is gone.
func TestAcknowledged(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	a.mu.Lock()
	l := a.lives["b"]
	a.mu.Unlock()
	own := &shortage{}
	if got := a.rounds(l, own); got != formingPatience {
		t.Errorf("before the job is complete: %d rounds", got)
	}
	a.Formed(2)
	for deadline := time.Now().Add(arrives); a.rounds(l, own) != mutePatience; time.Sleep(time.Millisecond) { // this process may stand still, and say nothing for a while
		if time.Now().After(deadline) {
			t.Fatalf("of a host that lives: %d rounds, want %d", a.rounds(l, own), mutePatience)
		}
	}
	own.late(4*strain, time.Now())
	if got := a.rounds(l, own); got != 4*patience {
		t.Errorf("short of processor time: %d rounds, want %d", got, 4*patience)
	}
	a.unplug("b")
	if got := a.rounds(l, &shortage{}); got != 1 {
		t.Errorf("of a host of which nothing comes: %d rounds, want 1", got)
	}
}

// TestGivenUpByGossip: gossip may give up a launcher that had no processor time for a
// second. Who judges asks it all the same, and as often as anybody.
func TestGivenUpByGossip(t *testing.T) {
	a, b := pair(t, "127.0.0.1")
	_, _ = a.line1(t, "b"), b.line1(t, "a")
	if answered, others := askPatiently(a, "b"); !answered || others != 1 {
		t.Fatalf("asked among its likes: answered %v, %d others", answered, others)
	}
	if err := b.list.Leave(arrives); err != nil { // it goes on answering
		t.Fatal(err)
	}
	for len(a.list.Members()) > 1 {
		time.Sleep(time.Millisecond)
	}
	if answered, others := askPatiently(a, "b"); !answered || others != 1 {
		t.Errorf("asked when gossip has given it up: answered %v, %d others", answered, others)
	}
}

// TestAskedNowhere: who is asked before gossip knows where it is, or where nothing can be
// sent to it, has as long for an answer as others have, so that all of a judge's patience
// is not gone at once.
func TestAskedNowhere(t *testing.T) {
	a := open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1:0"})
	a.mu.Lock()
	a.places["cut off"] = &memberlist.Node{Name: "cut off", Addr: net.IPv4(127, 0, 0, 1), Port: 0}
	a.mu.Unlock()
	if err := a.list.SendBestEffort(a.place("cut off"), []byte("{}")); err == nil {
		t.Fatal("sent")
	}
	for _, name := range []string{"nobody", "cut off"} {
		begun := time.Now()
		if answered, _ := a.ask(name); answered {
			t.Errorf("%s answered", name)
		}
		if took := time.Since(begun); took < questions*probeTimeout {
			t.Errorf("%s was asked for %v, want at least %v", name, took, questions*probeTimeout)
		}
	}
}
