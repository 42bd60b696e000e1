package main

import (
	"slices"
	"testing"

	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
	"ebtrain/trainer/method/bidvl"
)

// TestGraphNodes logs how many kernels and calls of libraries a step of the paper's
// networks is, as the GPU's backend plans it, on one rank: the nodes of its graph, but
// for what a library makes of one call. It fails where that grows.
func TestGraphNodes(t *testing.T) {
	for _, c := range []struct {
		net         string
		batch, most int
	}{{"conv32", 64, 520}, {"resnet128", 36, 1550}} {
		p, err := bidvl.PresetFor(c.net)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := p.Config.Step(1, c.batch)
		if err != nil {
			t.Fatal(err)
		}
		pl := plan.New(g, plan.Options{World: 1, WidenBF16: true, WeightsLast: true, BF16Images: true, Apart: 256 << 10})
		for i := range pl.Steps {
			if !libraries(pl, i) {
				pl.Steps[i].Scratch = kernel.Scratch(pl, i)
			}
		}
		pl.Allocate()
		alone, phases, batches, inBatches := 0, 0, 0, 0
		for _, l := range cuda.Launches(pl, false) {
			if steps := slices.Concat(l.Chains...); len(steps) > 1 {
				batches++
				inBatches += len(steps)
				continue
			}
			n := 1
			if i := l.Chains[0][0]; !libraries(pl, i) {
				list, err := kernel.For(pl, i)
				if err != nil {
					t.Fatal(err)
				}
				n = len(list)
			}
			alone += min(n, 1)
			phases += max(n-1, 0)
		}
		nodes := alone + phases + batches
		t.Logf("%s, batch %d: %d steps, %d nodes: %d batches of %d steps, %d other steps, %d second phases of sums", c.net, c.batch, len(pl.Steps), nodes, batches, inBatches, alone, phases)
		if nodes > c.most {
			t.Errorf("%s: %d nodes, want at most %d", c.net, nodes, c.most)
		}
	}
}

// libraries says whether a library does a step.
func libraries(p *plan.Plan, i int) bool {
	switch p.Steps[i].Kind() {
	case plan.KindConv2D, plan.KindConv2DGradX, plan.KindConv2DGradW, plan.KindMatMul:
		return true
	}
	return false
}
