package host_test

import (
	"errors"
	"regexp"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// TestLateBetweenHosts: a rank may come later to a collective than what is sent may stay
// unacknowledged, though the others' data are more than there is room for until it reads.
func TestLateBetweenHosts(t *testing.T) {
	const limit, late = time.Second, 3 * time.Second
	for name, hosts := range map[string]string{"pump": "2", "threads": "2t"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := as(hosts, host.Config{Hosts: pretend(hosts, 2), ListenIP: "127.0.0.1"})
			var wg sync.WaitGroup
			for r, c := range group(t, 2, host.Impatient(cfg, limit)) {
				wg.Go(func() {
					defer shut(t, c)
					time.Sleep(time.Duration(r) * late)
					x := make([]float32, 1_000_000)
					x[len(x)-1] = float32(r + 1)
					err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(x)})
					if err != nil || x[len(x)-1] != 3 {
						t.Errorf("rank %d: %v, sum %v, want 3", r, err, x[len(x)-1])
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestDataDropped: data that are acknowledged by nobody, though the other end has room for them,
// end the group, with a sentence about what lies between.
func TestDataDropped(t *testing.T) {
	const limit = time.Second
	for name, hosts := range map[string]string{"pump": "2", "threads": "2t"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := as(hosts, host.Config{Hosts: pretend(hosts, 2), ListenIP: "127.0.0.1"})
			comms := group(t, 2, host.Impatient(cfg, limit))
			for _, c := range comms {
				if err := c.(*host.Comm).Deafen(); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for r, c := range comms {
				wg.Go(func() {
					late := time.AfterFunc(time.Minute, func() { c.Abort(errors.New("a minute has passed")) })
					defer late.Stop()
					err := collective.Do(t.Context(), c, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(make([]float32, 1000))})
					if !errors.Is(err, collective.ErrPeerLost) || !regexp.MustCompile(`rank [01]: it has acknowledged no data of rank [01] for 1s, though it has room for them: `).MatchString(err.Error()) {
						t.Errorf("rank %d: %v", r, err)
					}
				})
			}
			wg.Wait()
			for _, c := range comms {
				_ = c.Close() // the group has failed
			}
		})
	}
}
