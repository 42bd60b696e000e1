package plan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// inOrderOf runs all steps of a plan in an order.
func inOrderOf(t *testing.T, p *Plan, world int, order []int) [][]byte {
	t.Helper()
	m, err := newMachine(p, world)
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	for _, i := range order {
		if err := m.steps[i](); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return m.results()
}

// shuffled is an order of steps that respects deps, drawn at random.
func shuffled(r *rand.Rand, deps [][]int) (order []int) {
	done := make([]bool, len(deps))
	for len(order) < len(deps) {
		var ready []int
		for i, list := range deps {
			if !done[i] && !slices.ContainsFunc(list, func(j int) bool { return !done[j] }) {
				ready = append(ready, i)
			}
		}
		i := ready[r.IntN(len(ready))]
		done[i] = true
		order = append(order, i)
	}
	return order
}

// upTo is 0 … n−1.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// data is what Deps would be if no memory were shared: who makes what a step reads.
func (p *Plan) data() [][]int {
	deps := make([][]int, len(p.Steps))
	maker := map[int]int{} // by root
	for i, s := range p.Steps {
		for _, v := range s.In {
			if j, ok := maker[p.Values[v].Root]; ok {
				deps[i] = append(deps[i], j)
			}
		}
		if w, ok := s.Op.(Wait); ok {
			for j := range i {
				if st, ok := p.Steps[j].Op.(Start); ok && st.Number == w.Number {
					deps[i] = append(deps[i], j)
				}
			}
		}
		for _, v := range s.Out {
			maker[p.Values[v].Root] = i
		}
	}
	return deps
}

func same(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// TestDeps runs random graphs, and a training step, in random orders that Deps
// allows: no bit changes. With the dependencies of data alone bits do change, so the
// test can see what is missing.
func TestDeps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	broken, free := 0, 0
	check := func(t *testing.T, p *Plan, world int) {
		for i := range p.Steps {
			p.Steps[i].Scratch = 64 * r.IntN(5)
			if k := p.Steps[i].Kind(); k == KindStart || k == KindWait || k == KindCopy || k == KindFill {
				p.Steps[i].Scratch = 0
			}
		}
		p.Allocate()
		deps := p.Deps()
		want := inOrderOf(t, p, world, upTo(len(p.Steps)))
		for range 3 {
			order := shuffled(r, deps)
			if !slices.IsSorted(order) {
				free++
			}
			if !same(inOrderOf(t, p, world, order), want) {
				t.Fatalf("in the order %v the results differ; dependencies %v of\n%s", order, deps, dump(t, p))
			}
		}
		if order := shuffled(r, p.data()); !same(inOrderOf(t, p, world, order), want) {
			broken++
		}
	}
	for seed := range uint64(60) {
		g, err := random(rand.New(rand.NewPCG(seed, 5)), 5+int(seed)%40)
		if err != nil {
			t.Fatal(err)
		}
		world := 1 + int(seed%2)
		check(t, New(g, Options{Name: fmt.Sprint("random ", seed), World: world, Remat: seed%4 >= 2}), world)
	}
	check(t, New(step(t), Options{Name: "step", World: 2}), 2)
	t.Logf("%d other orders; %d of 61 programs give other results without hazards", free, broken)
	if free < 100 || broken < 10 {
		t.Errorf("%d other orders were tried, and %d programs are wrong without hazards: want more of both", free, broken)
	}
}

// TestDepsAreFew names the dependencies of a small program: what follows from
// others is left out, and what shares memory waits.
func TestDepsAreFew(t *testing.T) {
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 8, 8)), b.Input("w", graph.T(graph.F32, 8, 8))
	y := b.MatMul(x, w, false, false)          // 0
	z := b.MatMul(y, w, false, false)          // 1
	v := b.MatMul(z, y, false, false)          // 2: after 1, which is after 0
	b.Output("v", v)                           // 3
	b.Output("u", b.MatMul(x, x, false, true)) // 4, 5: free
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for apart, want := range map[int][][]int{0: {{}, {0}, {1}, {2}, {2}, {4}}, 256: {{}, {0}, {1}, {2}, {}, {4}}, 255: {{}, {0}, {1}, {2}, {2}, {4}}} {
		p := New(g, Options{Name: "few", Apart: apart})
		p.Allocate()
		if got := p.Deps(); !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("with arrays of up to %d bytes apart: got %v, want %v, of\n%s", apart, got, want, dump(t, p))
		}
	}
}

// TestDepsOfNothing: what waits for a collective comes after its start, though neither
// touches a byte.
func TestDepsOfNothing(t *testing.T) {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 0, 3))
	b.Output("y", b.AllReduce(collective.Sum, "nothing", x)[0]) // 0 copy, 1 start, 2 wait, 3 copy
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "nothing", World: 2})
	p.Allocate()
	deps := p.Deps()
	for i, s := range p.Steps {
		if s.Kind() == KindWait && !slices.Equal(deps[i], []int{i - 1}) {
			t.Errorf("the wait of step %d follows %v, of\n%s", i, deps[i], dump(t, p))
		}
	}
}

// TestStartsAreInOrder: collectives start in one order on all ranks, though they share no
// memory and no data.
func TestStartsAreInOrder(t *testing.T) {
	var b graph.Builder
	for i := range 3 {
		x := b.Input(fmt.Sprint("x", i), graph.T(graph.F32, 16))
		b.Output(fmt.Sprint("y", i), b.AllReduce(collective.Sum, fmt.Sprint("r", i), x)[0])
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := New(g, Options{Name: "three", World: 2})
	p.Allocate()
	deps, before := p.Deps(), -1
	for i, s := range p.Steps {
		if s.Kind() != KindStart {
			continue
		}
		if before >= 0 && !slices.Contains(deps[i], before) {
			t.Errorf("the start of step %d follows %v, want that of step %d among them, of\n%s", i, deps[i], before, dump(t, p))
		}
		before = i
	}
}

// TestApart: of programs whose arrays are all small, those that share no memory
// depend on data alone, but for variables, outputs and buckets, which stay where
// they are; and nothing is computed otherwise.
func TestApart(t *testing.T) {
	fewer := 0
	for seed := range uint64(30) {
		g, err := random(rand.New(rand.NewPCG(seed, 5)), 5+int(seed)%40)
		if err != nil {
			t.Fatal(err)
		}
		p, q := New(g, Options{Name: "shared"}), New(g, Options{Name: "apart", Apart: 1 << 20})
		p.Allocate()
		q.Allocate()
		if same := inOrderOf(t, p, 1, upTo(len(p.Steps))); !slices.EqualFunc(same, inOrderOf(t, q, 1, upTo(len(q.Steps))), bytes.Equal) {
			t.Fatalf("seed %d: the results differ", seed)
		}
		edges := func(deps [][]int) (n int) {
			for _, d := range deps {
				n += len(d)
			}
			return n
		}
		taken := map[int]int{} // by offset
		for v := range q.Values {
			if val := &q.Values[v]; val.Root == v && val.Space == Arena && !val.IsConst && val.Bytes() > 0 && q.lives()[v].made != never {
				if other, ok := taken[val.Offset]; ok {
					t.Fatalf("seed %d: values %d and %d share memory", seed, v, other)
				}
				taken[val.Offset] = v
			}
		}
		if edges(q.Deps()) < edges(p.Deps()) {
			fewer++
		}
	}
	if fewer < 3 {
		t.Errorf("%d of 30 programs have fewer dependencies, want some", fewer)
	}
}
