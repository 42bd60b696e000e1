package host_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/colltest"
	"ebtrain/collective/host"
)

var testKey = []byte("a key for tests, nothing secret")

// envHosts tells processes of the suite how many hosts to pretend.
const envHosts = "HOST_TEST_HOSTS"

func TestMain(m *testing.M) {
	colltest.Main(open)
	os.Exit(m.Run())
}

// as is cfg, of leaders that read with threads if spec is that of pretend with a t behind
// it, and of leaders in a grid of rows of two if with a g.
func as(spec string, cfg host.Config) host.Config {
	switch {
	case strings.HasSuffix(spec, "t"):
		return host.Threaded(cfg)
	case strings.HasSuffix(spec, "g"):
		return host.InGrid(cfg, 2)
	}
	return cfg
}

// pretend spreads size ranks over hosts: "2" in blocks, "2i" interleaved.
func pretend(spec string, size int) []string {
	spec = strings.TrimRight(spec, "tg")
	number, inter := strings.CutSuffix(spec, "i")
	count, err := strconv.Atoi(cmp.Or(number, "1"))
	if err != nil {
		panic(err)
	}
	names := make([]string, size)
	for r := range names {
		h := r * count / size
		if inter {
			h = r % count
		}
		names[r] = fmt.Sprintf("node%02d", h)
	}
	return names
}

func open(ctx context.Context, rank, size int, dir string) (collective.Comm, error) {
	hosts := os.Getenv(envHosts)
	c, err := host.New(ctx, as(hosts, host.Config{
		Rank: rank, Size: size, Job: "suite", Key: testKey, ListenIP: "127.0.0.1",
		Hosts: pretend(hosts, size), Exchange: host.DirExchange(dir, rank, size),
	}))
	return openOver(ctx, c, err)
}

// group makes ranks in this process.
func group(t testing.TB, n int, cfg host.Config) []collective.Comm {
	t.Helper()
	exchanges := host.MemExchange(n)
	comms := make([]collective.Comm, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			mine := cfg
			mine.Rank, mine.Size, mine.Job, mine.Key, mine.Exchange = r, n, "suite", testKey, exchanges[r]
			c, err := host.New(t.Context(), mine)
			comms[r], errs[r] = c, err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return comms
}

// TestConformance: where ranks have few processors leaders read themselves, "2t" and
// "3t" are as where they have many; "8g" is as where there are many hosts.
func TestConformance(t *testing.T) {
	for _, hosts := range []string{"1", "2", "2t", "3i", "3t", "8", "8g", "5ig"} {
		if testing.Short() && hosts != "1" && hosts != "2t" {
			continue
		}
		t.Run("hosts="+hosts, func(t *testing.T) {
			t.Setenv(envHosts, hosts)
			ip := "127.0.0.1"
			if hosts == "3i" {
				ip = "::1"
			}
			colltest.Run(t, colltest.Factory{
				New: func(t testing.TB, n int) []collective.Comm {
					return group(t, n, as(hosts, host.Config{Hosts: pretend(hosts, n), ListenIP: ip}))
				},
				Open:  open,
				Brief: hosts != "1",
			})
		})
	}
}
