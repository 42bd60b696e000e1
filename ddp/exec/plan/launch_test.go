package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// TestLaunches runs launches in random orders that their dependencies allow, the
// chains of each in any order: no bit changes. Every step is in one launch, those
// beside others are short or alike, and there are no more of them than asked for.
func TestLaunches(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	fewer, free, alikes := 0, 0, 0
	check := func(name string, g *graph.Graph, o Options, with Together) {
		o.Name = name
		p := New(g, o)
		p.Allocate()
		chains, _ := p.Chains(with.Chain)
		launches := p.Launches(with)
		world := max(1, o.World)
		want := inOrderOf(t, p, world, upTo(len(p.Steps)))
		var all []int
		deps := make([][]int, len(launches))
		for n, l := range launches {
			deps[n] = l.Deps
			steps := slices.Concat(l.Chains...)
			all = append(all, steps...)
			if l.Alike {
				alikes++
				name := with.Alike(steps[0])
				if len(steps) < 2 || len(steps) != len(l.Chains) || name == "" || slices.ContainsFunc(steps, func(i int) bool { return with.Alike(i) != name }) {
					t.Fatalf("%s: launch %d has the chains %v, which are not alike", name, n, l.Chains)
				}
			}
			if !l.Alike && len(l.Chains) > 1 && (with.Most > 0 && len(steps) > with.Most || slices.ContainsFunc(steps, func(i int) bool { return !with.can(p, i, with.Batch) })) {
				t.Fatalf("%s: launch %d has the chains %v, want %+v", name, n, l.Chains, with)
			}
			if !l.Alike && len(steps) > 1 && with.Can != nil && slices.ContainsFunc(steps, func(i int) bool { return !with.Can(i) }) {
				t.Fatalf("%s: launch %d has the steps %v, some of which can only be alone", name, n, steps)
			}
			if slices.ContainsFunc(l.Deps, func(d int) bool { return d >= n }) {
				t.Fatalf("%s: launch %d depends on %v", name, n, l.Deps)
			}
		}
		if slices.Sort(all); !slices.Equal(all, upTo(len(p.Steps))) {
			t.Fatalf("%s: the launches have the steps %v of %d", name, all, len(p.Steps))
		}
		if len(launches) < len(chains) {
			fewer++
		}
		for range 3 {
			var order []int
			turns := shuffled(r, deps)
			if !slices.IsSorted(turns) {
				free++
			}
			for _, n := range turns {
				for _, c := range r.Perm(len(launches[n].Chains)) {
					order = append(order, launches[n].Chains[c]...)
				}
			}
			if !same(inOrderOf(t, p, world, order), want) {
				t.Fatalf("%s: in the order %v the results differ", name, order)
			}
		}
	}
	for seed := range uint64(60) {
		g, err := random(rand.New(rand.NewPCG(seed, 12)), 10+int(seed)%40)
		if err != nil {
			t.Fatal(err)
		}
		points := 50 * int(1+seed%3)
		with := Together{Chain: points, Batch: points * int(seed%4), Most: int(seed % 5)}
		with.Patience = int(seed % 7)
		if seed%6 == 5 {
			with.Can = func(i int) bool { return i%5 > 0 }
		}
		if seed%2 == 1 {
			with.Alike = func(i int) string { return []string{"", "x", "y"}[i%3] }
		}
		check(fmt.Sprint("random ", seed), g, Options{World: 1 + int(seed%2), Apart: int(seed%3) * 200}, with)
	}
	check("step", step(t), Options{World: 2}, Together{Chain: 1 << 10, Batch: 1 << 12})
	if fewer < 20 || free < 50 || alikes < 20 {
		t.Errorf("%d programs have fewer launches than chains, %d launches have steps that are alike, and %d other orders were tried: want more", fewer, alikes, free)
	}
}

// TestLaunchesBatch: the steps of an optimiser for weights of their own are one launch, or as
// many as were asked for, but for those that can only be alone, and what fills the device does
// not wait for it. Where they fill it, too, those that are alike are one launch.
func TestLaunchesBatch(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 64, 64))
	for k := range 5 {
		w := b.Input(fmt.Sprint("w", k), graph.T(graph.F32, 3, 1+k))
		b.Output(fmt.Sprint("stepped", k), b.Mul(w, w))
	}
	b.Output("y", b.Exp(b.MatMul(x, x, false, false)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "batch", Apart: 1 << 10})
	p.Allocate()
	var steps []int
	for i, s := range p.Steps {
		if s.Kind() == KindFused && p.Values[s.Out[0]].Bytes() < 100 {
			steps = append(steps, i)
		}
	}
	alike := func(i int) string {
		if k := slices.Index(steps, i); k >= 0 {
			return []string{"even", "odd"}[k%2]
		}
		return ""
	}
	for name, c := range map[string]struct {
		with Together
		want []int // chains of each launch: of the product, its exponential, its copy, the five steps, and five copies
	}{
		"any number": {Together{Chain: 16, Batch: 100}, []int{1, 1, 1, 5, 1, 1, 1, 1, 1}},
		"five":       {Together{Chain: 16, Batch: 100, Most: 5}, []int{1, 1, 1, 5, 1, 1, 1, 1, 1}},
		"two":        {Together{Chain: 16, Batch: 100, Most: 2}, []int{1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1}},
		"one alone":  {Together{Chain: 16, Batch: 100, Can: func(i int) bool { return i != steps[1] }}, []int{1, 1, 1, 1, 1, 4, 1, 1, 1, 1}},
		"two by two": {Together{Alike: alike}, []int{1, 1, 1, 3, 1, 1, 1, 2, 1, 1}},
	} {
		var got []int
		for _, l := range p.Launches(c.with) {
			got = append(got, len(l.Chains))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: launches of %v chains, want %v\n%s", name, got, c.want, dump(t, p))
		}
	}
}

// TestWaitsComeLast: what does not need a collective is launched before its Wait.
func TestWaitsComeLast(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 64, 64))
	b.Output("sum", b.Exp(b.AllReduce(collective.Sum, "x", x)[0]))
	b.Output("y", b.Exp(b.MatMul(x, x, false, false)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "waits", World: 2})
	p.Allocate()
	launches := p.Launches(Together{})
	for n, l := range launches {
		if p.Steps[l.Chains[0][0]].Kind() == KindWait && n != len(launches)-3 {
			t.Errorf("the Wait is launch %d of %d, want it last but for what needs it\n%s", n, len(launches), dump(t, p))
		}
	}
}

// TestPatience: what a collective waits for is not kept until nothing else can begin.
func TestPatience(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 64, 64))
	small := b.Input("small", graph.T(graph.F32, 3, 3))
	small = b.Exp(b.MatMul(small, small, false, false)) // can begin behind one launch
	b.Output("sum", b.AllReduce(collective.Sum, "small", b.MatMul(small, small, false, false))[0])
	for range 9 {
		x = b.MatMul(x, x, false, false)
	}
	b.Output("y", x)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "patience", World: 2, Apart: 1 << 20})
	p.Allocate()
	for patience, want := range map[int]int{0: 11, 1: 2, 2: 3, 4: 5} {
		launches := p.Launches(Together{Chain: 16, Batch: 100, Patience: patience})
		first := slices.IndexFunc(launches, func(l Launch) bool { return p.Steps[l.Chains[0][0]].Kind() == KindFused })
		if first != want {
			t.Errorf("with the patience %d the small step is launch %d, want %d\n%s", patience, first, want, dump(t, p))
		}
	}
}
