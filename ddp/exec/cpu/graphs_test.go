package cpu

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/randomgraph"
)

var (
	graphTime = flag.Duration("graphs.time", 3*time.Second, "how long TestRandomGraphs looks for programs that go wrong; with 0 it takes -graphs.count programs")
	graphSeed = flag.Uint64("graphs.seed", 1, "the first seed of TestRandomGraphs")
	graphs    = flag.Int("graphs.count", 0, "how many programs TestRandomGraphs takes at most; 0 for no limit but time")
)

// randomTargets are this backend on 1 to 3 threads, with and without
// rematerialisation, with each engine, and with products of bfloat16 where there
// are such.
func randomTargets(t testing.TB) []randomgraph.Target {
	ranks := func(c Config) []exec.Backend {
		all := make([]exec.Backend, 4)
		for i := range all {
			all[i] = open(t, c)
		}
		return all
	}
	one := ranks(Config{Threads: 1})
	targets := []randomgraph.Target{
		{Name: "1 thread", Ranks: one, Bits: "1 thread"},
		{Name: "1 thread, rematerialised", Ranks: one, Remat: true, Bits: "1 thread"},
	}
	for threads := 2; threads <= 3; threads++ {
		name := fmt.Sprintf("%d threads", threads)
		all := ranks(Config{Threads: threads})
		targets = append(targets, randomgraph.Target{Name: name, Ranks: all, Bits: name},
			randomgraph.Target{Name: name + ", rematerialised", Ranks: all, Remat: true, Bits: name})
	}
	targets = append(targets, randomgraph.Target{Name: "plain loops", Ranks: ranks(Config{Threads: 1, Engine: loopEngine{}})})
	if b, err := start(Config{Threads: 1, BF16: true}, 0); err == nil {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		targets = append(targets, randomgraph.Target{Name: "bf16", Ranks: ranks(Config{Threads: 1, BF16: true}), BF16: true})
	}
	return targets
}

// TestRandomGraphs hunts for programs that go wrong, and prints the small ones it
// makes of them: go test ./ddp/exec/cpu -run RandomGraphs -v -graphs.time 10m
func TestRandomGraphs(t *testing.T) {
	c := &randomgraph.Checker{Targets: randomTargets(t), Group: exectest.NewGroup}
	c.Test(t, *graphSeed, *graphs, *graphTime, randomgraph.DefaultLimits())
}

// FuzzGraphs grows programs of bytes, which Go's fuzzing makes short.
func FuzzGraphs(f *testing.F) {
	for seed := range byte(8) {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(i)*(2*seed+37) + seed*91
		}
		f.Add(data)
	}
	c := &randomgraph.Checker{Targets: randomTargets(f), Group: exectest.NewGroup}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := randomgraph.Grow(randomgraph.FromBytes(data), randomgraph.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(p); err != nil {
			t.Fatal(&randomgraph.Found{Err: err, Program: p})
		}
	})
}
