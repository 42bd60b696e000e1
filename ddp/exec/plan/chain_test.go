package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/ddp/graph"
)

// TestChains runs groups in random orders that their dependencies allow, the steps of
// a group one after the other: no bit changes. Every step is in one group, and those
// of a group are short and follow from each other.
func TestChains(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	fewer, free := 0, 0
	check := func(name string, g *graph.Graph, o Options, points int) {
		o.Name = name
		p := New(g, o)
		p.Allocate()
		groups, deps := p.Chains(points)
		steps := p.Deps()
		world := max(1, o.World)
		want := inOrderOf(t, p, world, upTo(len(p.Steps)))
		if all := slices.Concat(groups...); !slices.Equal(slices.Sorted(slices.Values(all)), upTo(len(p.Steps))) {
			t.Fatalf("%s: the groups have the steps %v of %d", name, all, len(p.Steps))
		}
		of := map[int]int{}
		for n, group := range groups {
			for k, i := range group {
				of[i] = n
				if k > 0 && (!p.short(i, points) || !slices.ContainsFunc(steps[i], func(d int) bool { return slices.Contains(group[:k], d) })) {
					t.Fatalf("%s: step %d is in the group %v", name, i, group)
				}
			}
			if slices.ContainsFunc(deps[n], func(d int) bool { return d >= n }) {
				t.Fatalf("%s: group %d depends on %v", name, n, deps[n])
			}
		}
		if len(groups) < len(p.Steps) {
			fewer++
		}
		for range 3 {
			var order []int
			turns := shuffled(r, deps)
			if !slices.IsSorted(turns) {
				free++
			}
			for _, n := range turns {
				order = append(order, groups[n]...)
			}
			if !same(inOrderOf(t, p, world, order), want) {
				t.Fatalf("%s: in the order %v the results differ", name, order)
			}
		}
	}
	for seed := range uint64(60) {
		g, err := random(rand.New(rand.NewPCG(seed, 11)), 10+int(seed)%40)
		if err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint("random ", seed), g, Options{World: 1 + int(seed%2), Apart: int(seed%3) * 200}, 50*int(1+seed%3))
	}
	check("step", step(t), Options{World: 2}, 1<<10)
	if fewer < 20 || free < 50 {
		t.Errorf("%d programs have fewer groups than steps, and %d other orders were tried: want more", fewer, free)
	}
}

// TestChainsDoNotCross: a and b could each be in one group with what reads both, but
// a group that something outside comes between would wait for itself.
func TestChainsDoNotCross(t *testing.T) {
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 4, 4)), b.Input("w", graph.T(graph.F32, 4, 4))
	a := b.Exp(x)                                                   // 0: small
	y := b.MatMul(a, w, false, false)                               // 1: not fused
	s := b.SumKeep(b.Mul(a, y), 0)                                  // 2: small, of 0 and of 1, which is of 0
	b.Output("s", b.Exp(b.SumKeep(b.Add(s, b.Ones(b.Type(s))), 1))) // 3 and so on: small, of 2
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "cross", Apart: 1 << 10})
	p.Allocate()
	groups, deps := p.Chains(16)
	for n, group := range groups {
		if slices.Contains(group, 0) && len(group) > 1 {
			t.Errorf("group %v has a step before and one behind the product; %v %v\n%s", group, groups, deps, dump(t, p))
		}
		if k := slices.Index(group, 2); k >= 0 && (k+1 == len(group) || n < 2) {
			t.Errorf("group %v is number %d: want step 2 with those behind it, after the product; %v %v\n%s", group, n, groups, deps, dump(t, p))
		}
	}
}
