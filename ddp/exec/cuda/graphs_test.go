package cuda

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/randomgraph"
)

var (
	graphTime = flag.Duration("graphs.time", 0, "how long TestRandomGraphs looks for programs that go wrong, beside -graphs.count 0; 0 for no limit")
	graphSeed = flag.Uint64("graphs.seed", 1, "the first seed of TestRandomGraphs")
	graphs    = flag.Int("graphs.count", 6, "how many programs TestRandomGraphs takes at most; 0 for no limit but time")
)

// randomTargets are this backend with plain kernels, launched one by one, captured, as the
// body of a node, on one lane and rematerialised, which promise the same bits, and with the
// libraries'.
func randomTargets(t testing.TB) []randomgraph.Target {
	ranks := func(c Config) []exec.Backend {
		c.Transport = TransportStaged
		all := make([]exec.Backend, 4)
		for i := range all {
			all[i] = open(t, c)
		}
		return all
	}
	plain := ranks(Config{Plain: true, Graphs: GraphsOff})
	return []randomgraph.Target{
		{Name: "plain", Ranks: plain, Bits: "plain"},
		{Name: "plain, rematerialised", Ranks: plain, Remat: true, Bits: "plain"},
		{Name: "plain, captured", Ranks: ranks(Config{Plain: true}), Bits: "plain"},
		{Name: "plain, the body of a node", Ranks: ranks(Config{Plain: true, Body: true}), Bits: "plain"},
		{Name: "plain, one lane", Ranks: ranks(Config{Plain: true, Lanes: 1, Graphs: GraphsOff}), Bits: "plain"},
		{Name: "libraries", Ranks: ranks(Config{})},
	}
}

// round is how many programs share backends: these keep the kernels of all that they have
// compiled, and each is a library to the double, of which a process has no more than some
// ten thousand.
const round = 50

// TestRandomGraphs hunts for programs that go wrong on the doubles, and prints the small
// ones it makes of them: go test ./ddp/exec/cuda -run RandomGraphs -v
// -graphs.time 10m -graphs.count 0
func TestRandomGraphs(t *testing.T) {
	cudatest.Use(t)
	end := time.Now().Add(*graphTime)
	for done := 0; *graphs == 0 || done < *graphs; done += round {
		left := time.Until(end)
		if *graphTime > 0 && left <= 0 || t.Failed() && !testing.Verbose() {
			return
		}
		programs := round
		if *graphs > 0 {
			programs = min(round, *graphs-done)
		}
		seed := *graphSeed + uint64(done)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := &randomgraph.Checker{Targets: randomTargets(t), Group: exectest.NewGroup}
			c.Test(t, seed, programs, max(0, left), randomgraph.DefaultLimits())
		})
	}
}
