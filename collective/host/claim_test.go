package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var quiet = slog.New(slog.DiscardHandler)

func TestClaims(t *testing.T) {
	c := newClaims(Config{Hosts: []string{"a", "b", "a", "a", "b", "a", "a"}, Launchers: []int{0, 1, 0, 2, 1, 3, 2}})
	if want := map[claim]int{{"a", 2}: 3, {"a", 3}: 5}; fmt.Sprint(c.delegates) != fmt.Sprint(want) {
		t.Errorf("delegates are %v, want %v", c.delegates, want)
	}
	failures := make([][]byte, 7)
	failures[3] = []byte("no way")
	if got, want := c.left(failures, quiet), []string{"a", "b", "a", "a, launcher 2", "b", "a", "a, launcher 2"}; !slices.Equal(got, want) {
		t.Errorf("hosts are %q, want %q", got, want)
	}
}

// prove has n ranks of one host and as many launchers prove what they share;
// there[r] runs rank r's part.
func prove(t *testing.T, there ...func(func())) [][]string {
	t.Helper()
	n := len(there)
	exchanges, all, errs := MemExchange(n), make([][]string, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		cfg := Config{Rank: r, Size: n, Job: "job", Key: []byte("the key of the test"), Exchange: exchanges[r], Hosts: slices.Repeat([]string{"h"}, n)}
		for l := range n {
			cfg.Launchers = append(cfg.Launchers, l)
		}
		wg.Go(func() {
			there[r](func() { all[r], errs[r] = newClaims(cfg).prove(t.Context(), cfg, quiet) })
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

// proves wants all ranks to find those hosts: where one is late to share memory it shares none,
// and it is tried again.
func proves(t *testing.T, want []string, there ...func(func())) {
	t.Helper()
	for try := 1; ; try++ {
		all := prove(t, there...)
		if !slices.ContainsFunc(all, func(got []string) bool { return !slices.Equal(got, want) }) {
			return
		}
		if t.Logf("hosts are %q", all); try == 5 {
			t.Fatalf("want %q on all ranks", want)
		}
	}
}

func here(f func()) { f() }

// elsewhere runs f in a network of its own, on a thread that ends with it.
func elsewhere(t *testing.T) func(func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	return func(f func()) {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Errorf("needs a network namespace: %v", err)
		}
		f()
	}
}

// TestProveShared shares memory between launchers that can.
func TestProveShared(t *testing.T) {
	proves(t, []string{"h", "h", "h"}, here, here, here)
}

// TestProveUnshared has a launcher whose network is another, whatever is said of
// its host: it is a host of its own on all ranks.
func TestProveUnshared(t *testing.T) {
	proves(t, []string{"h", "h, launcher 1", "h"}, here, elsewhere(t), here)
}

// TestManyRanks has the cards of 4,096 ranks on 512 hosts: they fit into one
// exchange of the launchers, which holds 8 MiB, many times over, and one that
// differs is found.
func TestManyRanks(t *testing.T) {
	const size = maxRanks
	hosts := make([]string, size)
	for r := range hosts {
		hosts[r] = fmt.Sprintf("a-host-with-a-long-name-%03d.cluster.example.org/0123456789ab", r/8)
	}
	cfg := Config{Size: size, Job: strings.Repeat("j", 80), Hosts: hosts}
	blobs, total, digest := make([][]byte, size), 0, hostsDigest(hosts)
	for r := range blobs {
		c := card{Version: version, Job: cfg.Job, Hosts: digest}
		if r%8 == 0 {
			c.Local, c.Net = "@ebtrain-0123456789abcdef01234567", "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535"
		}
		var err error
		if blobs[r], err = json.Marshal(c); err != nil {
			t.Fatal(err)
		}
		total += len(blobs[r])
	}
	if total > 1<<20 {
		t.Errorf("the cards are %d bytes", total)
	}
	cfg.Exchange = func(context.Context, string, []byte) ([][]byte, error) { return blobs, nil }
	mine := card{Version: version, Job: cfg.Job, Hosts: hostsDigest(hosts)}
	cards, err := swapCards(t.Context(), cfg, mine)
	if err != nil || cards[4088].Net == "" || cards[4095].Net != "" {
		t.Errorf("%v", err)
	}
	other := slices.Clone(hosts)
	other[4000] += "x"
	mine.Hosts = hostsDigest(other)
	if _, err := swapCards(t.Context(), cfg, mine); err == nil || !strings.Contains(err.Error(), "another list of hosts") {
		t.Errorf("other hosts were taken: %v", err)
	}
	if hostsDigest([]string{"ab", "c"}) == hostsDigest([]string{"a", "bc"}) {
		t.Error("names run together")
	}
}

// TestSilentStrangers connects many who say nothing, and then a rank, which does
// not wait for them.
func TestSilentStrangers(t *testing.T) {
	for _, network := range []string{"tcp4", "unixpacket"} {
		ln := testListener(t, network)
		want := call{forData, 3}
		done := make(chan error, 1)
		go func() {
			got, err := testIdentity(0, "job", "the right key").accept(t.Context(), ln, []call{want}, quiet)
			closeAll(got)
			done <- err
		}()
		var oldest net.Conn
		for i := range silent + 100 {
			c, err := net.Dial(network, ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer shut(t, c)
			if i == 0 {
				oldest = c
			}
		}
		c, err := testIdentity(3, "job", "the right key").dial(t.Context(), network, ln.Addr().String(), call{forData, 0})
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, c)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := oldest.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Error(err)
		}
		if _, err := oldest.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest stranger is still there: %v", err)
		}
	}
}
