package main

import (
	"testing"

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
	}{{"conv32", 64, 1000}, {"resnet128", 36, 2600}} {
		p, err := bidvl.PresetFor(c.net)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := p.Config.Step(1, c.batch)
		if err != nil {
			t.Fatal(err)
		}
		pl := plan.New(g, plan.Options{World: 1, WidenBF16: true, WeightsLast: true, BF16Images: true, Apart: 256 << 10})
		kinds := map[plan.Kind]int{}
		for i := range pl.Steps {
			switch pl.Steps[i].Kind() {
			case plan.KindConv2D, plan.KindConv2DGradX, plan.KindConv2DGradW, plan.KindMatMul:
			default:
				pl.Steps[i].Scratch = kernel.Scratch(pl, i)
			}
		}
		pl.Allocate()
		nodes, first := 0, 0
		for i := range pl.Steps {
			k := pl.Steps[i].Kind()
			n := 1
			switch k {
			case plan.KindConv2D, plan.KindConv2DGradX, plan.KindConv2DGradW, plan.KindMatMul:
			default:
				list, err := kernel.For(pl, i)
				if err != nil {
					t.Fatal(err)
				}
				n = len(list)
			}
			if n > 0 {
				first++
			}
			nodes += n
			kinds[k] += n
		}
		groups, _ := pl.Chains(4096)
		t.Logf("%s, batch %d: %d steps, %d launches, of them second phases of sums %d; by kind %v; in chains of at most 4,096 points %d", c.net, c.batch, len(pl.Steps), nodes, nodes-first, kinds, len(groups))
		if nodes > c.most {
			t.Errorf("%s: %d launches, want at most %d", c.net, nodes, c.most)
		}
	}
}
