package host_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/bits"
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

// TestDisagreement gives ranks configurations that do not fit together.
func TestDisagreement(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*host.Config) // of rank 1
		want   string
	}{
		{"job", func(c *host.Config) { c.Job = "other" }, ""}, // they do not even exchange
		{"hosts", func(c *host.Config) { c.Hosts = []string{"a", "a", "b"} }, "has another list of hosts"},
		{"key", func(c *host.Config) { c.Key = []byte("another key for tests") }, "key"},
		{"absent", func(c *host.Config) { c.Size = 0 }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			exchanges := host.MemExchange(3)
			var wg sync.WaitGroup
			errs := make([]error, 3)
			for r := range 3 {
				cfg := host.Config{Rank: r, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[r], Timeout: 300 * time.Millisecond}
				if r == 1 {
					test.change(&cfg)
				}
				wg.Go(func() {
					c, err := host.New(t.Context(), cfg)
					if err == nil {
						shut(t, c)
					}
					errs[r] = err
				})
			}
			wg.Wait()
			if errs[0] == nil || errs[1] == nil {
				t.Errorf("ranks 0 and 1 joined: %v", errs)
			}
			if !strings.Contains(errs[1].Error(), test.want) {
				t.Errorf("rank 1: got error %v, want one with %q", errs[1], test.want)
			}
		})
	}
}

// TestMissingRankIsNamed lets a rank give its card and then not connect.
func TestMissingRankIsNamed(t *testing.T) {
	exchanges := host.MemExchange(3)
	var others sync.WaitGroup
	others.Go(func() {
		if _, err := exchanges[2](t.Context(), "collective/host job", []byte(`{"version":2,"job":"job","hosts":"`+host.HostsDigest(make([]string, 3))+`"}`)); err != nil {
			t.Error(err)
		}
	})
	others.Go(func() {
		c, err := host.New(t.Context(), host.Config{Rank: 1, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[1], Timeout: 300 * time.Millisecond})
		if err == nil {
			err = errors.Join(errors.New("rank 1 is connected without rank 2"), c.Close())
			t.Error(err)
		}
	})
	_, err := host.New(t.Context(), host.Config{Rank: 0, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[0], Timeout: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "for rank [2] to connect") || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("got error %v, want one that names rank 2 and the time", err)
	}
	others.Wait()
}

// TestMismatchNamesBoth wants both descriptions in every rank's error.
func TestMismatchNamesBoth(t *testing.T) {
	for _, hosts := range []string{"1", "3"} {
		comms := group(t, 3, host.Config{Hosts: pretend(hosts, 3), ListenIP: "127.0.0.1"})
		x := make([]float32, 12)
		var wg sync.WaitGroup
		for r, c := range comms {
			req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(x[:10]), Label: "generator/bucket 3"}
			if r == 2 {
				req.Vec, req.Label = collective.VecOf(x[:11]), "energy/bucket 0"
			}
			wg.Go(func() {
				err := collective.Do(t.Context(), c, req)
				for _, want := range []string{`all-reduce sum f32[10] "generator/bucket 3"`, `all-reduce sum f32[11] "energy/bucket 0"`, "seq 0", "rank 2"} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("hosts=%s rank %d: got error %v, want one with %q", hosts, r, err, want)
					}
				}
				shut(t, c)
			})
		}
		wg.Wait()
	}
}

// TestMismatchBetweenHosts has one host start something else than all others, which
// leaders exchange in another way: every rank is told, whomever it hears from.
func TestMismatchBetweenHosts(t *testing.T) {
	small, large := make([]float32, 16), make([]float32, 20_000)
	requests := []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(small)},
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(small[:8])},
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(large)},
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(large[:12_000])},
		{Kind: collective.Broadcast, Vec: collective.VecOf(small)},
		{Kind: collective.Barrier},
	}
	for _, n := range []int{4, 5, 7} {
		for odd := range n {
			if testing.Short() && odd%2 == 0 {
				continue
			}
			for i, other := range requests {
				for k, one := range requests {
					if k == i || i > 0 && k > 0 && k != (i+odd)%len(requests) {
						continue
					}
					var wg sync.WaitGroup
					for r, c := range group(t, n, host.Config{Hosts: pretend(fmt.Sprint(n), n), ListenIP: "127.0.0.1"}) {
						req := other
						if r == odd {
							req = one
						}
						if req.Kind != collective.Barrier { // ranks of a process share no vector
							req.Vec = collective.VecOf(make([]float32, req.Vec.Len))
						}
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
							defer cancel()
							if err := collective.Do(ctx, c, req); !errors.Is(err, collective.ErrMismatch) {
								t.Errorf("%d hosts, rank %d in %s, the others in %s: rank %d got %v", n, odd, one, other, r, err)
							}
						})
						defer func() { _ = c.Close() }()
					}
					wg.Wait()
					if t.Failed() {
						return
					}
				}
			}
		}
	}
}

// TestTree wants the sum of the balanced binary tree, bit for bit, whatever
// the hosts: so ranks can continue a tree of virtual shards.
func TestTree(t *testing.T) {
	const length = 3000
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for _, n := range []int{2, 4, 8} {
		want := make([]float32, length)
		for i := range want {
			sums := make([]float32, n)
			for r := range sums {
				sums[r] = input(r, i)
			}
			for ; len(sums) > 1; sums = sums[:len(sums)/2] {
				for k := range len(sums) / 2 {
					sums[k] = sums[2*k] + sums[2*k+1]
				}
			}
			want[i] = sums[0]
		}
		for _, hosts := range []string{"1", "2", "4", "8"} {
			for _, kind := range []collective.Kind{collective.AllReduce, collective.ReduceScatter} {
				for _, l := range []int{800, length} {
					l = l / n * n
					treeOf(t, kind, hosts, n, l, func(int) bool { return false }, input, want)
				}
			}
		}
	}
}

// vectorOf is memory from Alloc, if the rank is one that takes it, or ordinary memory.
func vectorOf(c collective.Comm, length int, allocs func(rank int) bool) ([]float32, error) {
	mem, err := c.Alloc(4 * length) // all ranks do
	if err != nil || !allocs(c.Rank()) {
		return make([]float32, length), err
	}
	return unsafe.Slice((*float32)(mem.Ptr), length), nil
}

func treeOf(t *testing.T, kind collective.Kind, hosts string, n, length int, allocs func(rank int) bool, input func(r, i int) float32, want []float32) {
	t.Helper()
	var wg sync.WaitGroup
	for r, c := range group(t, n, host.Config{Hosts: pretend(hosts, n), ListenIP: "127.0.0.1"}) {
		wg.Go(func() {
			defer shut(t, c)
			x, err := vectorOf(c, length, allocs)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range x {
				x[i] = input(r, i)
			}
			if err := collective.Do(t.Context(), c, collective.Request{Kind: kind, Op: collective.Sum, Vec: collective.VecOf(x)}); err != nil {
				t.Error(err)
			}
			lo, hi := 0, length
			if kind == collective.ReduceScatter {
				lo, hi = r*length/n, (r+1)*length/n
			}
			if !slices.Equal(x[lo:hi], want[lo:hi]) {
				t.Errorf("%s of %d on %d ranks, %s hosts: rank %d has other bits than the tree", kind, length, n, hosts, r)
			}
		})
	}
	wg.Wait()
}

// TestTreeOfHosts wants the bits of the tree over the hosts of the trees over their
// ranks, by doubling and by slices, where neither number is a power of two.
func TestTreeOfHosts(t *testing.T) {
	input := func(rank, i int) float32 { return float32(math.Sin(float64(rank*7919+i)) * 1e3) }
	for _, test := range []struct {
		ranks int
		hosts string
	}{{3, "3"}, {5, "5"}, {6, "6"}, {7, "7"}, {7, "3"}, {9, "5i"}, {12, "12"}, {17, "17"}} {
		hosts := pretend(test.hosts, test.ranks)
		for _, length := range []int{1, 800, 9000, 20_000} { // of which three are small enough to be doubled, one of them posted
			if length > 10_000 && test.ranks > 9 && testing.Short() {
				continue
			}
			want := treeOfHosts(hosts, length, input)
			for _, allocs := range []bool{false, true} {
				treeOf(t, collective.AllReduce, test.hosts, test.ranks, length, func(int) bool { return allocs }, input, want)
			}
		}
	}
}

// TestTreeInPlace wants the same bits whatever way a host takes: vectors reduced where
// they lie, in several chunks, and next to it a host that copies them.
func TestTreeInPlace(t *testing.T) {
	const period = 5000
	var sines [5][period]float32
	for rank := range sines {
		for i := range sines[rank] {
			sines[rank][i] = float32(math.Sin(float64(rank*7919 + i)))
		}
	}
	input := func(rank, i int) float32 { return sines[rank][i%period] }
	for _, ranks := range []int{2, 4, 5} {
		for _, hosts := range []string{"2", "4"} {
			if strings.Compare(hosts, fmt.Sprint(ranks)) > 0 || testing.Short() && ranks == 4 {
				continue
			}
			const length = 1_250_003 // three chunks, the last one short, and no equal slices
			want := treeOfHosts(pretend(hosts, ranks), period, input)
			for len(want) < length {
				want = append(want, want[:min(len(want), length-len(want))]...)
			}
			for name, allocs := range map[string]func(rank int) bool{
				"all": func(int) bool { return true }, "none": func(int) bool { return false },
				"first": func(r int) bool { return r == 0 }, "not first": func(r int) bool { return r > 0 }, "last": func(r int) bool { return r == ranks-1 },
			} {
				t.Logf("%d ranks on %s hosts, from Alloc: %s", ranks, hosts, name)
				treeOf(t, collective.AllReduce, hosts, ranks, length, allocs, input, want)
			}
		}
	}
}

// treeOfHosts is the sum that ranks on these hosts must have.
func treeOfHosts(hosts []string, length int, input func(r, i int) float32) []float32 {
	want := make([]float32, length)
	for i := range want {
		own := map[string][]float32{}
		var order []string
		for r, h := range hosts {
			if own[h] == nil {
				order = append(order, h)
			}
			own[h] = append(own[h], input(r, i))
		}
		var sums []float32
		for _, h := range order {
			sums = append(sums, tree(own[h]))
		}
		want[i] = tree(sums)
	}
	return want
}

// tree is the sum of x as package reduce has it, one by one.
func tree(x []float32) float32 {
	if len(x) == 1 {
		return x[0]
	}
	cut := 1 << (bits.Len(uint(len(x)-1)) - 1)
	return tree(x[:cut]) + tree(x[cut:])
}

// TestCloseLeavesNothing counts goroutines, descriptors and mappings.
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
					if err := collective.Do(t.Context(), c, collective.Request{Kind: collective.Barrier}); err != nil && !fail {
						t.Error(err)
					}
					if fail {
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
		for range 100 { // a closed goroutine may need a moment to be gone
			if after = count(t); after[0] <= before[0] {
				break
			}
			time.Sleep(time.Millisecond)
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
	dump := collective.Dump(recent)
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
