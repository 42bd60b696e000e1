package plan

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// start fills inputs and variables with numbers of their names.
func (m *machine) start() {
	for _, list := range [][]External{m.p.Inputs, m.p.Vars} {
		for _, e := range list {
			r := rand.New(rand.NewPCG(uint64(len(e.Name)), uint64(e.Name[len(e.Name)-1])))
			t := exec.NewTensor(e.Type)
			for i := range e.Type.Shape.Len() {
				t.SetAt(i, r.Float64()-0.5)
			}
			copy(m.external(e), m.stored(e, t).Bytes())
		}
	}
}

// stored is t as the plan wants it in memory.
func (m *machine) stored(e External, t *exec.Tensor) *exec.Tensor {
	if m.p.Values[e.Value].Last {
		return exec.ChannelsLast(t)
	}
	return t
}

// results are the outputs and variables, in memory's order.
func (m *machine) results() (all [][]byte) {
	for _, list := range [][]External{m.p.Outputs, m.p.Vars} {
		for _, e := range list {
			all = append(all, m.external(e))
		}
	}
	return all
}

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

// TestMachine holds the machine, and so the plan, to the reference: networks with
// derivatives of all orders.
func TestMachine(t *testing.T) {
	for _, c := range exectest.Networks() {
		if err := holds(c, Options{Name: c.Name, World: 1}); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// holds compares what a plan of a case computes with what the reference does.
func holds(c exectest.Case, o Options) error {
	for _, kind := range []graph.Kind{graph.Input, graph.Var} {
		g, err := c.Graph(graph.F64, kind)
		if err != nil {
			return err
		}
		values := c.Tensors(graph.F64)
		want, err := reference(g, values)
		if err != nil {
			return err
		}
		p := New(g, o)
		p.Allocate()
		m, err := newMachine(p, 1)
		if err != nil {
			return err
		}
		for _, list := range [][]External{p.Inputs, p.Vars} {
			for _, e := range list {
				copy(m.external(e), m.stored(e, values[e.Name]).Bytes())
			}
		}
		for i, run := range m.steps {
			if err := run(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		for i, e := range p.Outputs {
			got := exec.NewTensor(e.Type)
			copy(got.Bytes(), m.external(e))
			for k := range e.Type.Shape.Len() {
				if a, b := got.At(k), want[i].At(k); math.Abs(a-b) > 1e-9*(1+math.Abs(b)) {
					return fmt.Errorf("%s, element %d: got %v, want %v", e.Name, k, a, b)
				}
			}
		}
	}
	return nil
}

// reference computes the outputs of g.
func reference(g *graph.Graph, values map[string]*exec.Tensor) (out []*exec.Tensor, err error) {
	b := ref.New()
	vars := b.NewVars()
	for name, v := range values {
		if err := vars.Set(name, v); err != nil {
			return nil, err
		}
	}
	p, err := b.Compile(g, exec.Options{Name: "reference", Vars: vars})
	if err != nil {
		return nil, err
	}
	for name, v := range values {
		if in := p.Input(name); in != nil {
			copy(in.Bytes(), v.Bytes())
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		return nil, err
	}
	for _, o := range g.Outputs() {
		out = append(out, p.Output(o.Name))
	}
	return out, nil
}
