package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

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
			inTime(t, func(limit time.Duration) error { // or what is wanted may not be said yet
				errs := joining(t, limit, test.change)
				if errs[0] == nil || errs[1] == nil {
					return fmt.Errorf("ranks 0 and 1 joined: %v", errs)
				}
				if !strings.Contains(errs[1].Error(), test.want) {
					return fmt.Errorf("rank 1: got error %w, want one with %q", errs[1], test.want)
				}
				return nil
			})
		})
	}
}

// joining is how three ranks fail to join within a limit, the second of which has another Config.
func joining(t *testing.T, limit time.Duration, change func(*host.Config)) []error {
	exchanges := host.MemExchange(3)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for r := range 3 {
		cfg := host.Config{Rank: r, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[r], Timeout: limit}
		if r == 1 {
			change(&cfg)
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
	return errs
}

// TestMissingRankIsNamed lets a rank give its card and then not connect.
func TestMissingRankIsNamed(t *testing.T) {
	inTime(t, func(limit time.Duration) error { return rankIsMissing(t, limit) })
}

func rankIsMissing(t *testing.T, limit time.Duration) error {
	exchanges := host.MemExchange(3)
	var others sync.WaitGroup
	others.Go(func() {
		if _, err := exchanges[2](t.Context(), "collective/host job", []byte(`{"version":5,"job":"job","hosts":"`+host.HostsDigest(make([]string, 3))+`"}`)); err != nil {
			t.Error(err)
		}
	})
	others.Go(func() {
		c, err := host.New(t.Context(), host.Config{Rank: 1, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[1], Timeout: limit})
		if err == nil {
			err = errors.Join(errors.New("rank 1 is connected without rank 2"), c.Close())
			t.Error(err)
		}
	})
	_, err := host.New(t.Context(), host.Config{Rank: 0, Size: 3, Job: "job", Key: testKey, Exchange: exchanges[0], Timeout: limit})
	others.Wait()
	if err == nil || !strings.Contains(err.Error(), "for rank [2] to connect") || !strings.Contains(err.Error(), limit.String()) {
		return fmt.Errorf("got error %w, want one that names rank 2 and the time", err)
	}
	return nil
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
				if e, ok := errors.AsType[*collective.Error](err); hosts == "1" && (!ok || e.Peer != 2) { // the first rank is what others are compared with
					t.Errorf("rank %d: got %v, want rank 2 to be at fault", r, err)
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
