package plan

import (
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// above are, by step, all that must be complete before it begins, however far.
func above(deps [][]int) []map[int]bool {
	all := make([]map[int]bool, len(deps))
	for i, list := range deps {
		all[i] = map[int]bool{}
		for _, j := range list {
			all[i][j] = true
			for k := range all[j] {
				all[i][k] = true
			}
		}
	}
	return all
}

// travelsOf is the steps that start and wait for the collective of that label.
func travelsOf(t *testing.T, p *Plan, label string) (start, wait int) {
	t.Helper()
	is := func(k Kind) func(Step) bool {
		return func(s Step) bool { return s.Kind() == k && s.Travel().Label == label }
	}
	start, wait = slices.IndexFunc(p.Steps, is(KindStart)), slices.IndexFunc(p.Steps, is(KindWait))
	if start < 0 || wait < 0 {
		t.Fatalf("no collective %q in\n%s", label, dump(t, p))
	}
	return start, wait
}

// A gather into a variable overwrites the other ranks' parts as soon as it has begun: who
// reads the old value has read it by then, though the gather needs nothing of that step.
func TestGatherAwaitsReaders(t *testing.T) {
	var b graph.Builder
	w := b.Var("w", graph.T(graph.F32, 64))
	b.Output("old", b.MatMul(b.Reshape(w, graph.D(8, 8)), b.Reshape(w, graph.D(8, 8)), false, false))
	b.Assign(w, b.AllGather(2, "gather", b.Neg(b.Part(2, w))))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{World: 2, Rank: 1})
	p.Allocate()
	start, _ := travelsOf(t, p, "gather")
	if space, _, _ := p.View(p.Steps[start].Op.(Start).Bucket); space != Var {
		t.Fatalf("it is not gathered in the variable, in\n%s", dump(t, p))
	}
	reader := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind() == KindMatMul })
	if !above(p.Deps())[start][reader] {
		t.Errorf("step %d overwrites what step %d reads, which it does not wait for, in\n%s", start, reader, dump(t, p))
	}
}

// A gather overwrites all of its bucket as soon as it has begun: who reads what lay there
// before has read it by then, also where that is no memory of this rank's part.
func TestGatherAwaitsReadersOfItsMemory(t *testing.T) {
	var b graph.Builder
	c := b.AllReduce(collective.Sum, "before", b.Exp(b.Input("x", graph.T(graph.F32, 16))))[0]
	m := b.Reshape(c, graph.D(4, 4))
	b.Output("product", b.MatMul(m, m, false, false))
	y := b.Exp(c)
	b.Output("own", y) // so it is made in its turn, and copied into the bucket
	b.Output("all", b.AllGather(2, "gather", y))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{World: 2, Rank: 1, Apart: 64})
	p.Allocate()
	first, _ := travelsOf(t, p, "before")
	start, _ := travelsOf(t, p, "gather")
	reader := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Kind() == KindMatMul })
	bucket := func(step int) (from, to int) {
		v := p.Steps[step].Op.(Start).Bucket
		_, _, at := p.View(v)
		return at, at + p.Values[v].Bytes()
	}
	from, to := bucket(first)
	at, end := bucket(start)
	_, _, mine := p.View(p.Steps[start].In[0])
	if reader > start || from < at || to > end || mine < to {
		t.Fatalf("the product, step %d, is of %d to %d, the gather in %d to %d, and this rank's part at %d, in\n%s", reader, from, to, at, end, mine, dump(t, p))
	}
	if !above(p.Deps())[start][reader] {
		t.Errorf("step %d overwrites what step %d reads, which it does not wait for, in\n%s", start, reader, dump(t, p))
	}
}

// All of a bucket is the collective's own until it is waited for, also where its result is
// a part: what is made in the rest of its memory comes after that.
func TestBucketIsFreeAfterWait(t *testing.T) {
	var b graph.Builder
	b.Output("part", b.ReduceScatter(collective.Sum, 2, "scatter", b.Exp(b.Input("x", graph.T(graph.F32, 64)))))
	c := b.AllReduce(collective.Sum, "before", b.Exp(b.Input("c", graph.T(graph.F32, 16))))[0]
	c = b.Exp(c)
	b.Output("own", c) // so it is made in its turn, and copied into the bucket
	b.Output("c", b.AllReduce(collective.Sum, "reuse", c)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{World: 2, Rank: 1})
	p.Allocate()
	first, over := travelsOf(t, p, "scatter")
	second, _ := travelsOf(t, p, "reuse")
	_, _, at := p.View(p.Steps[first].Op.(Start).Bucket)
	v := p.Steps[second].In[0]
	if _, _, reused := p.View(v); reused != at { // this rank's part, which was read, lies behind
		t.Fatalf("the second bucket lies at %d, and the first at %d, in\n%s", reused, at, dump(t, p))
	}
	maker := slices.IndexFunc(p.Steps, func(s Step) bool { return slices.Contains(s.Out, v) })
	if !above(p.Deps())[maker][over] {
		t.Errorf("step %d writes into a bucket that is waited for in step %d, in\n%s", maker, over, dump(t, p))
	}
}
