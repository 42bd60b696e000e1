package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
	"ebtrain/trainer/method/bidvl"
)

// TestGraphNodes logs how many kernels and calls of libraries a step of the paper's
// networks is, as the GPU's backend plans it, on one rank, by kind: the nodes of its
// graph, but for what a library makes of one call. It fails where they grow; wanted are at
// most 400 and 1,200.
func TestGraphNodes(t *testing.T) {
	for _, c := range []struct {
		net         string
		batch, most int
	}{{"conv32", 64, 265}, {"resnet128", 36, 915}} {
		p, err := bidvl.PresetFor(c.net)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := p.Config.Step(1, c.batch)
		if err != nil {
			t.Fatal(err)
		}
		pl := planned(g, true)
		steps, launches, nodes := map[string]int{}, map[string]int{}, 0
		for _, l := range cuda.Launches(pl, func(i int) bool { return !libraries(pl, i) }) {
			kind, n := launchKind(t, pl, l)
			steps[kind] += len(slices.Concat(l.Chains...))
			launches[kind] += n
			nodes += n
		}
		var text strings.Builder
		for _, kind := range slices.Sorted(maps.Keys(steps)) {
			fmt.Fprintf(&text, "\n%-45s %4d steps, %4d nodes", kind, steps[kind], launches[kind])
		}
		t.Logf("%s, batch %d: %d steps, %d nodes%s", c.net, c.batch, len(pl.Steps), nodes, &text)
		if nodes > c.most {
			t.Errorf("%s: %d nodes, want at most %d", c.net, nodes, c.most)
		}
	}
}

// launchKind is the kind of a launch, and how many nodes it is.
func launchKind(t *testing.T, p *plan.Plan, l plan.Launch) (kind string, nodes int) {
	i := l.Chains[0][0]
	switch {
	case l.Alike:
		return "of one kernel, together", 1
	case len(l.Chains) > 1 || len(l.Chains[0]) > 1:
		return "small fused, in batches", 1
	case libraries(p, i):
		return "convolutions and products", 1
	}
	list, err := kernel.For(p, i)
	if err != nil {
		t.Fatal(err)
	}
	f, fused := p.Steps[i].Op.(*plan.Fused)
	switch {
	case fused && len(f.Sums) == 0:
		kind = "fused, pointwise"
	case fused:
		kind = "fused, with reductions"
	default:
		kind = string(p.Steps[i].Kind())
	}
	return kind, len(list)
}

// libraries says whether a library does a step.
func libraries(p *plan.Plan, i int) bool {
	switch p.Steps[i].Kind() {
	case plan.KindConv2D, plan.KindConv2DGradX, plan.KindConv2DGradW, plan.KindMatMul:
		return true
	}
	return false
}
