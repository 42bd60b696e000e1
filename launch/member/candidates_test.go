package member

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
)

func TestCandidates(t *testing.T) {
	of := func(key byte, label string, p rendezvous.Ports) []int {
		return candidates(secret{bytes.Repeat([]byte{key}, 32), label}, p)
	}
	usual := of(1, "a", rendezvous.Ports{})
	if len(usual) != candidateCount || !slices.Equal(usual, of(1, "a", rendezvous.Ports{})) {
		t.Errorf("got %v", usual)
	}
	for _, others := range [][]int{of(2, "a", rendezvous.Ports{}), of(1, "b", rendezvous.Ports{})} {
		if slices.Equal(usual, others) {
			t.Errorf("another job has the same ports, %v", others)
		}
	}
	for allowed, want := range map[rendezvous.Ports]int{{}: 8, {First: 16384, Last: 32767}: 8, {First: 30000, Last: 30002}: 3, {First: 7, Last: 7}: 1, {First: 65500, Last: 65535}: 8} {
		ports := of(3, "c", allowed)
		sorted := slices.Sorted(slices.Values(ports))
		if len(slices.Compact(sorted)) != want {
			t.Errorf("%v: got %v, want %d ports", allowed, ports, want)
		}
		if !allowed.Any() && (sorted[0] < allowed.First || sorted[len(sorted)-1] > allowed.Last) {
			t.Errorf("%v: got %v", allowed, ports)
		}
	}
}

// freeRange is n ports in a row that are free on the loopback.
func freeRange(t *testing.T, n int) rendezvous.Ports {
	t.Helper()
	for first := 20000 + int(time.Now().UnixNano()/1000%9000); first < 32000; first += n {
		free := true
		for p := first; p < first+n && free; p++ {
			tr, err := listen(netip.MustParseAddr("127.0.0.1"), []int{p}, 0, nil)
			if free = err == nil; free {
				_ = tr.Shutdown()
			}
		}
		if free {
			return rendezvous.Ports{First: first, Last: first + n - 1}
		}
	}
	t.Fatal("no free ports")
	return rendezvous.Ports{}
}

// Jobs with the same key, told apart by their names, share a host and its few
// ports: each launcher finds its own node 0 beside the others, and beside a program
// that takes connections and says nothing.
func TestJobsSideBySide(t *testing.T) {
	ports := freeRange(t, 8)
	key := bytes.Repeat([]byte{9}, 32)
	first := candidates(secret{key, "job 0"}, ports)[0]
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	var coords []*Member
	for i := range 3 {
		coords = append(coords, open1(t, Config{Name: fmt.Sprint("coord ", i), Coordinator: true, Endpoint: "127.0.0.1", Key: key, Label: fmt.Sprint("job ", i), Ports: ports}))
		if p := coords[i].Port(); p < ports.First || p > ports.Last || p == first {
			t.Errorf("job %d listens on %d, of %v", i, p, ports)
		}
	}
	for i := range 3 {
		m := open1(t, Config{Name: fmt.Sprint("other ", i), Endpoint: "127.0.0.1", Key: key, Label: fmt.Sprint("job ", i), Ports: ports})
		if p := m.Port(); p < ports.First || p > ports.Last {
			t.Errorf("the other launcher of job %d listens on %d, not in %v", i, p, ports)
		}
		m.Send("", rendezvous.Message{Kind: rendezvous.KindRegister, Epoch: i})
		if in := next(t, coords[i]); in.From != fmt.Sprint("other ", i) || in.Msg.Epoch != i {
			t.Errorf("job %d got %+v", i, in)
		}
	}
}

// Node 0 may come later; when no port is right, it is said what answered.
func TestNobodyAtTheCandidates(t *testing.T) {
	ports := freeRange(t, 4)
	key := bytes.Repeat([]byte{9}, 32)
	open1(t, Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1", Key: key, Label: "one", Ports: ports})
	c := Config{Name: "b", Endpoint: "127.0.0.1", Key: key, Label: "two", Ports: ports, Log: slog.New(slog.DiscardHandler)}
	refusal(t, c, "no coordinator of this job answered at 127.0.0.1 within ", "a launcher of another job answers at 127.0.0.1:", "the name of the job differs", "127.0.0.1: connection refused", "which come from the key", "that the key, --rdzv-id and --port-range are the same on all nodes")
	var late *Member
	var err error
	made := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() {
		defer close(made)
		if late, err = Open(t.Context(), Config{Name: "c", Coordinator: true, Endpoint: "127.0.0.1", Key: key, Label: "two", Ports: ports, Log: c.Log}); err != nil {
			t.Error(err)
		}
	})
	c.Wait = arrives
	m := open1(t, c)
	<-made
	if m.at.Port() != uint16(late.Port()) {
		t.Errorf("joined at %v, want port %d", m.at, late.Port())
	}
	if err := late.Close(); err != nil {
		t.Error(err)
	}
}

// A name may have many addresses of which most lead nowhere: not all ports are tried at each before
// the next is.
func TestManyAddresses(t *testing.T) {
	key := bytes.Repeat([]byte{9}, 32)
	c := Config{Name: "a", Coordinator: true, Endpoint: "127.0.0.1", Key: key, Label: "one", Ports: freeRange(t, 4)}
	open1(t, c)
	ports := candidates(secret{key, c.Label}, c.Ports)
	var all []netip.Addr
	var tried atomic.Int32 // how often the last port was
	for i := range 3 {
		dead := netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i)})
		for _, p := range ports {
			l, err := net.Listen("tcp", netip.AddrPortFrom(dead, uint16(p)).String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() { // it takes connections and says nothing
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if p == ports[len(ports)-1] {
						tried.Add(1)
					}
					defer func() { _ = c.Close() }()
				}
			}()
		}
		all = append(all, dead)
	}
	m := &Member{cfg: Config{Name: "b", Log: slog.New(slog.DiscardHandler)}, secret: secret{key, c.Label}}
	found, err := m.search(t.Context(), append(all, netip.MustParseAddr("127.0.0.1")), ports)
	m.wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := found.Close(); err != nil {
		t.Error(err)
	}
	if n := tried.Load(); n > 0 {
		t.Errorf("the last port was tried at %d addresses before the first at the last address", n)
	}
}

// All ports taken, or one outside of what is allowed, is a sentence.
func TestNoPort(t *testing.T) {
	ports := freeRange(t, 2)
	key := bytes.Repeat([]byte{9}, 32)
	for i := range 2 {
		open1(t, Config{Name: fmt.Sprint(i), Coordinator: true, Endpoint: "127.0.0.1:0", Key: key, Label: fmt.Sprint(i), Ports: ports})
	}
	for endpoint, want := range map[string]string{
		"127.0.0.1":      "listen for other launchers on 127.0.0.1: no port of ",
		"127.0.0.1:1234": "port 1234 of node 0 is not in --port-range " + ports.String(),
	} {
		_, err := Open(t.Context(), Config{Name: "x", Coordinator: true, Endpoint: endpoint, Key: key, Ports: ports, Wait: time.Second, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", endpoint, err)
		}
	}
}

// Any port may be listened on, but not be looked for: who joins is told so at once.
func TestPortToJoin(t *testing.T) {
	_, err := Open(t.Context(), Config{Name: "x", Endpoint: "127.0.0.1:0", Key: bytes.Repeat([]byte{9}, 32), Wait: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if want := `address of node 0 "127.0.0.1:0": port 0 is any port`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// A port that was asked for and is taken is one, too, with what to do.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = Open(t.Context(), Config{Name: "x", Coordinator: true, Endpoint: l.Addr().String(), Key: bytes.Repeat([]byte{9}, 32), Wait: time.Second, Log: slog.New(slog.DiscardHandler)})
	if want := ": another job or program has that port: give another one, or none"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q at its end", err, want)
	}
}

func TestNetworkAddr(t *testing.T) {
	for network, want := range map[string]string{"lo": "127.0.0.1", "127.0.0.0/8": "127.0.0.1", "127.0.0.1/32": "127.0.0.1"} {
		if a, err := NetworkAddr(network); err != nil || a.String() != want {
			t.Errorf("%s: got %v, %v", network, a, err)
		}
	}
	for _, network := range []string{"ib77", "203.0.113.0/24", ""} {
		if a, err := NetworkAddr(network); err == nil || !strings.Contains(err.Error(), "(it has lo 127.0.0.1") {
			t.Errorf("%s: got %v, %v", network, a, err)
		}
	}
}

// Of several addresses in a network the one is taken that others reach most surely.
func TestPreferred(t *testing.T) {
	for has, want := range map[string]string{
		"fe80::1%eth0 fd00::1 10.9.0.1 10.9.0.2": "10.9.0.1", "169.254.0.5 fe80::1%eth0 fd00::2 fd00::1": "fd00::2",
		"fe80::1%eth0 169.254.0.5": "fe80::1%eth0",
	} {
		if got := preferred(addrs(has)); got.String() != want {
			t.Errorf("of %s: %v, want %s", has, got, want)
		}
	}
}

// A port that is told must be of those that are allowed, the first and the last among them.
func TestWhere(t *testing.T) {
	few := rendezvous.Ports{First: 20000, Last: 20002}
	for _, tt := range []struct {
		endpoint    string
		coordinator bool
		ports       rendezvous.Ports
		want        []int // of any order
		err         string
	}{
		{"node0:20000", false, few, []int{20000}, ""},
		{"node0:20002", true, few, []int{20002}, ""},
		{"node0:19999", false, few, nil, "port 19999 of node 0 is not in --port-range 20000:20002"},
		{"node0:20003", true, few, nil, "port 20003 of node 0 is not in --port-range 20000:20002"},
		{"node0:7", false, rendezvous.Ports{}, []int{7}, ""},
		{"node0:0", true, few, []int{20000, 20001, 20002}, ""},
		{"node0", false, few, []int{20000, 20001, 20002}, ""},
		{"node0:x", false, few, nil, "the port is not a number from 0 to 65535"},
	} {
		m := &Member{cfg: Config{Endpoint: tt.endpoint, Coordinator: tt.coordinator, Ports: tt.ports}}
		host, ports, err := m.where()
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got error %v, want %q", tt.endpoint, err, tt.err)
			}
			continue
		}
		if err != nil || host != "node0" || !slices.Equal(slices.Sorted(slices.Values(ports)), tt.want) {
			t.Errorf("%s, node 0 %v: %s, %v, %v, want %v", tt.endpoint, tt.coordinator, host, ports, err, tt.want)
		}
	}
}
