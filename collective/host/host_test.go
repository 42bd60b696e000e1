package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

func TestConfig(t *testing.T) {
	good := host.Config{Rank: 0, Size: 2, Key: testKey, Exchange: host.MemExchange(2)[0]}
	for _, test := range []struct {
		name   string
		change func(*host.Config)
		want   string
	}{
		{"size", func(c *host.Config) { c.Size = 0 }, "size is 0, expected 1 to 4096"},
		{"rank", func(c *host.Config) { c.Rank = 2 }, "rank is 2, expected 0 to 1"},
		{"negative", func(c *host.Config) { c.Rank = -1 }, "rank is -1"},
		{"hosts", func(c *host.Config) { c.Hosts = []string{"a"} }, "1 hosts named, expected one for each of 2 ranks"},
		{"launchers", func(c *host.Config) { c.Launchers = []int{0} }, "1 launchers numbered, expected one for each of 2 ranks"},
		{"key", func(c *host.Config) { c.Key = []byte("short") }, "key has 5 bytes, expected at least 16"},
		{"exchange", func(c *host.Config) { c.Exchange = nil }, "no Exchange given"},
		{"timeout", func(c *host.Config) { c.Timeout = -1 }, "expected neither to be negative"},
		{"ip", func(c *host.Config) { c.Hosts = []string{"a", "b"}; c.ListenIP = "localhost" }, `listen IP is "localhost"`},
		{"exchange_fails", func(c *host.Config) {
			c.Exchange = func(context.Context, string, []byte) ([][]byte, error) { return nil, errors.New("no luck") }
		}, "exchange addresses: no luck"},
		{"exchange_short", func(c *host.Config) {
			c.Exchange = func(context.Context, string, []byte) ([][]byte, error) { return [][]byte{{}}, nil }
		}, "got 1 answers, expected 2"},
		{"exchange_garbage", func(c *host.Config) {
			c.Exchange = func(_ context.Context, _ string, b []byte) ([][]byte, error) { return [][]byte{b, []byte("?")}, nil }
		}, "rank 1: invalid character"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := good
			test.change(&cfg)
			c, err := host.New(t.Context(), cfg)
			if err == nil {
				shut(t, c)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// TestCloseLeavesNothing counts goroutines, descriptors and mappings, of groups over a device,
// too.
func TestCloseLeavesNothing(t *testing.T) {
	for _, hosts := range []string{"1", "2", "4"} {
		cfg := host.Config{Hosts: pretend(hosts, 4), ListenIP: "127.0.0.1"}
		use := func(fail bool) {
			var wg sync.WaitGroup
			for _, c := range group(t, 4, cfg) {
				wg.Go(func() {
					if _, err := c.Alloc(1 << 20); err != nil {
						t.Error(err)
					}
					if hosts == "2" {
						o, err := c.(*host.Comm).Over(t.Context(), apart{}, time.Minute)
						if err != nil {
							t.Error(err)
							return
						}
						defer shut(t, o)
					}
					if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier}); err != nil && !fail {
						t.Error(err)
					}
					if fail && c.Rank() == 0 { // its memory is on its way to ranks that do not come for it
						if _, err := c.Alloc(100); !errors.Is(err, collective.ErrAborted) {
							t.Errorf("alloc of one rank alone: %v", err)
						}
					} else if fail {
						time.Sleep(20 * time.Millisecond)
						c.Abort(errors.New("test"))
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		use(false) // what the runtime opens once is open now
		before := count(t)
		for i := range 3 {
			use(i == 1)
		}
		var after [3]int
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			after = count(t)
			if after[0] <= before[0] || time.Now().After(end) { // a goroutine that has ended may need a moment to be gone
				break
			}
		}
		for i, what := range []string{"goroutines", "descriptors", "mappings of shared memory"} {
			if after[i] > before[i] {
				t.Errorf("hosts=%s: %d %s after closing, %d before", hosts, after[i], what, before[i])
			}
		}
	}
}

func count(t *testing.T) [3]int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return [3]int{runtime.NumGoroutine(), len(fds), strings.Count(string(maps), "memfd:ebtrain")}
}

// TestRecorder wants what happened in the flight recorder, in the progress
// calls and, after a failure, in the log.
func TestRecorder(t *testing.T) {
	var log strings.Builder
	var mu sync.Mutex
	var progress []string
	var over []uint64
	comms := group(t, 2, host.Config{
		Recorded: 3,
		Logger:   slog.New(slog.NewTextHandler(&lockedWriter{mu: &mu, w: &log}, nil)),
		Progress: func(seq uint64, req collective.Request) {
			mu.Lock()
			defer mu.Unlock()
			progress = append(progress, fmt.Sprintf("%d %s %s", seq, req.Kind, req.Label))
		},
		Ended: func(seq uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			over = append(over, seq)
			if (err != nil) != (seq == 5) {
				t.Errorf("collective %d ended with %v", seq, err)
			}
		},
	})
	x := []float64{1, 2}
	var wg sync.WaitGroup
	for _, c := range comms {
		y := slices.Clone(x)
		wg.Go(func() {
			for i := range 5 {
				if err := collective.Do(t.Context(), c, collective.Request{
					Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(y), Label: fmt.Sprint("bucket ", i),
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p := comms[0].Start(collective.Request{Kind: collective.Barrier, Label: "end"})
	time.Sleep(5 * time.Millisecond)
	comms[1].Abort(errors.New("enough"))
	if err := p.Wait(t.Context()); !strings.Contains(fmt.Sprint(err), "barrier end, seq 5, rank 0 (peer 1): collective: group aborted by rank 1: enough") {
		t.Errorf("got error %v", err)
	}
	recent := comms[0].(*host.Comm).Recent()
	dump := ""
	for _, e := range recent {
		dump += e.String() + "\n"
	}
	for _, want := range []string{`seq 3 all-reduce max f64[2] "bucket 3" took `, `seq 5 barrier "end" failed after `} {
		if !strings.Contains(dump, want) {
			t.Errorf("the flight recorder holds\n%s\nwant a line with %s", dump, want)
		}
	}
	if len(recent) != 3 || recent[2].Err == nil || recent[1].Err != nil {
		t.Errorf("got %d entries, the last with error %v, want 3 and an error in the last only", len(recent), recent[2].Err)
	}
	for _, c := range comms {
		shut(t, c)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(progress, "4 all-reduce bucket 4") || len(progress) != 11 {
		t.Errorf("got %d progress calls %q, want 11", len(progress), progress)
	}
	slices.Sort(over)
	if fmt.Sprint(over) != "[0 0 1 1 2 2 3 3 4 4 5]" {
		t.Errorf("collectives %v have ended, want each on each rank that began it", over)
	}
	if !strings.Contains(log.String(), "bucket 4") {
		t.Errorf("the log does not show the flight recorder:\n%s", log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  *strings.Builder
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// TestOneProcessor runs ranks as goroutines on one thread of Go.
func TestOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, hosts := range []string{"1", "2"} {
		var wg sync.WaitGroup
		for _, c := range group(t, 4, host.Config{Hosts: pretend(hosts, 4), ListenIP: "127.0.0.1"}) {
			wg.Go(func() {
				defer shut(t, c)
				mem := make([]byte, 80000)
				for i := range 50 {
					binary.NativeEndian.PutUint64(mem, uint64(i))
					v := collective.VecOf(mem).Slice(0, len(mem)-i)
					if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: v}); err != nil {
						t.Error(err)
						return
					}
				}
				if mem[0] != 4*49 {
					t.Errorf("got %d, want %d", mem[0], 4*49)
				}
			})
		}
		wg.Wait()
	}
}

// shut closes c.
func shut(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestFloor wants the sum of all ranks of a host in all of them, which is what the
// loop without a barrier does, and which hosts there are.
func TestFloor(t *testing.T) {
	const n = 1000
	for hosts, want := range map[string]string{"1": "[0 0 0 0]", "2": "[0 0 1 1]", "2i": "[0 1 0 1]"} {
		var wg sync.WaitGroup
		for r, c := range group(t, 4, host.Config{Hosts: pretend(hosts, 4), ListenIP: "127.0.0.1"}) {
			wg.Go(func() {
				defer shut(t, c)
				c := c.(*host.Comm)
				if got := fmt.Sprint(c.Hosts()); got != want {
					t.Errorf("%s hosts: ranks are on %s, want %s", hosts, got, want)
				}
				mem, err := c.Alloc(4 * n)
				if err != nil {
					t.Error(err)
					return
				}
				x := unsafe.Slice((*float32)(mem.Ptr), n)
				for i := range x {
					x[i] = float32(r + i)
				}
				barrier := collective.Request{Kind: collective.Barrier}
				for _, do := range []func() error{
					func() error { return collective.Do(t.Context(), c, barrier) },
					func() error { return c.Floor(collective.VecOf(x)) },
					func() error { return collective.Do(t.Context(), c, barrier) },
				} {
					if err := do(); err != nil {
						t.Error(err)
					}
				}
				var sum, ranks float32
				for q, h := range c.Hosts() {
					if h == c.Hosts()[r] {
						sum, ranks = sum+float32(q), ranks+1
					}
				}
				for i, got := range x {
					if w := sum + ranks*float32(i); got != w {
						t.Errorf("%s hosts, rank %d: element %d is %v, want %v", hosts, r, i, got, w)
						return
					}
				}
				if err := c.Floor(collective.VecOf(make([]float32, 8))); !errors.Is(err, collective.ErrInvalid) {
					t.Errorf("floor of ordinary memory: got error %v", err)
				}
			})
		}
		wg.Wait()
	}
}

// TestHalfConnectedLeavesNothing: a rank that is connected within its host, and then waits in
// vain for another host, closes what it has opened.
func TestHalfConnectedLeavesNothing(t *testing.T) {
	hosts := []string{"a", "a", "b"}
	use := func() {
		exchanges := host.MemExchange(3)
		var wg sync.WaitGroup
		for r := range 2 {
			wg.Go(func() {
				c, err := host.New(t.Context(), host.Config{Rank: r, Size: 3, Job: "half", Key: testKey, Hosts: hosts, ListenIP: "127.0.0.1", Exchange: exchanges[r], Timeout: 200 * time.Millisecond})
				if err == nil {
					shut(t, c)
					t.Errorf("rank %d is connected without rank 2", r)
				}
			})
		}
		wg.Go(func() { // rank 2 gives its card, and no more
			if _, err := exchanges[2](t.Context(), "collective/host half", []byte(`{"version":5,"job":"half","hosts":"`+host.HostsDigest(hosts)+`","net":"127.0.0.1:1"}`)); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}
	use()
	before := count(t)
	use()
	if after := count(t); after[1] > before[1] {
		t.Errorf("%d descriptors after two ranks have given up, %d before", after[1], before[1])
	}
}
