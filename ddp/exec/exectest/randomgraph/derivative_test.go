package randomgraph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// TestDerivatives holds the gradients of random programs, whatever windows, strides,
// groups, indices and orders of derivatives they have, to central differences: on the
// reference, in float64, with values moved off the places where functions have kinks.
func TestDerivatives(t *testing.T) {
	proved, want := 0, 40
	if testing.Short() {
		want = 15
	}
	for seed := uint64(1); proved < want; seed++ {
		p, err := Grow(FromSeed(seed), Limits{Recurrence: 5, Nodes: 120})
		if err != nil {
			t.Fatal(err)
		}
		p.wild = tamed
		if p.Ranks == 1 && p.Shards == nil && seenByDifferences(p.Graph) {
			proved += proveGradients(t, seed, p)
		}
	}
}

// seenByDifferences says whether differences of a graph are its derivatives: not where a
// derivative is stopped, or a function jumps.
func seenByDifferences(g *graph.Graph) bool {
	for i, live := range g.Live() {
		if !live {
			continue
		}
		switch op := g.Nodes()[i].Op.(type) {
		case graph.StopGrad:
			return false
		case graph.Cast:
			if !op.To.IsFloat() {
				return false
			}
		case graph.Unary:
			if op.Fn == graph.Sign || op.Fn == graph.Step || op.Fn == graph.LeakyStep || op.Fn == graph.EluD || op.Fn == graph.EluDD {
				return false
			}
		case graph.Binary:
			if op.Fn == graph.Greater || op.Fn == graph.Equal {
				return false
			}
		}
	}
	return true
}

// slopes is a scalar that depends on all outputs of a program, with its gradients.
type slopes struct {
	prog      exec.Program
	noises    []noise
	leaves    []string // of floating point
	at, along map[string][]float64
}

// proveGradients compares the gradient of each leaf, along a random direction, with
// differences, and says how many programs that were: 0 if it has no leaf to move.
func proveGradients(t *testing.T, seed uint64, p *Program) int {
	s := slopesOf(t, seed, p)
	for _, name := range s.leaves {
		s.run(t, name, 0)
		want := 0.0
		for k, g := range s.prog.Output("gradient of " + name).F64() {
			want += g * s.along[name][k]
		}
		got, near := 0.0, false
		for _, h := range []float64{1e-3, 1e-4, 1e-5, 1e-6} { // steep functions want small steps
			got = (8*(s.run(t, name, h)-s.run(t, name, -h)) - (s.run(t, name, 2*h) - s.run(t, name, -2*h))) / (12 * h)
			near = near || math.Abs(got-want) <= 2e-5*(0.01+math.Abs(want))
		}
		if !near {
			t.Errorf("seed %d: the derivative along %s is %v, differences say %v", seed, name, want, got)
		}
	}
	return min(len(s.leaves), 1)
}

// slopesOf makes the scalar of a program in float64.
func slopesOf(t *testing.T, seed uint64, p *Program) *slopes {
	t.Helper()
	w, err := widen(p.Graph, false, tamed)
	if err != nil {
		t.Fatal(err)
	}
	b, ids := &graph.Builder{}, make([]graph.ID, w.graph.NumValues())
	var wrt []graph.ID
	s := &slopes{noises: w.noises, at: map[string][]float64{}, along: map[string][]float64{}}
	r := rand.New(rand.NewPCG(seed, 3))
	narrow := map[string]graph.Leaf{}
	for _, l := range leaves(p.Graph) {
		narrow[l.Name] = l
	}
	for i, live := range w.graph.Live() {
		if !live {
			continue
		}
		n := w.graph.Nodes()[i]
		leaf, is := n.Op.(graph.Leaf)
		if is {
			n.Op = graph.Leaf{Kind: graph.Input, Name: leaf.Name, Type: leaf.Type}
		}
		in := make([]graph.ID, len(n.In))
		for k, id := range n.In {
			in[k] = ids[id]
		}
		for k, id := range b.Apply(n.Op, in...) {
			ids[n.Out[k]] = id
		}
		if src, ok := narrow[leaf.Name]; is && ok {
			s.place(r, p, src)
			if src.Type.DType.IsFloat() && src.Type.Shape.Len() > 0 {
				wrt, s.leaves = append(wrt, ids[n.Out[0]]), append(s.leaves, leaf.Name)
			}
		}
	}
	sum := b.Zeros(graph.T(graph.F64))
	for i, o := range w.graph.Outputs() {
		if y := ids[o.ID]; b.Type(y).DType == graph.F64 && b.Shape(y).Len() > 0 {
			sum = b.Add(sum, b.Mean(b.Sin(b.Shift(y, 0.1*float64(i)))))
		}
	}
	b.Output("sum", sum)
	for i, g := range b.Grad(sum, wrt...) {
		b.Output("gradient of "+s.leaves[i], g)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if s.prog, err = ref.New().Compile(g, exec.Options{Name: fmt.Sprint("seed ", seed)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// place gives a leaf its value, a little off the program's, and a direction.
func (s *slopes) place(r *rand.Rand, p *Program, l graph.Leaf) {
	x := p.value(0, 0, l)
	at, along := make([]float64, l.Type.Shape.Len()), make([]float64, l.Type.Shape.Len())
	for i := range at {
		at[i] = x.At(i)
		if l.Type.DType.IsFloat() {
			at[i] += 0.3 * r.NormFloat64()
			along[i] = r.NormFloat64()
		}
	}
	s.at[l.Name], s.along[l.Name] = at, along
}

// run is the sum with leaf name moved by h along its direction. What stands for rounding
// is 1.
func (s *slopes) run(t *testing.T, name string, h float64) float64 {
	t.Helper()
	for leaf, at := range s.at {
		in := s.prog.Input(leaf)
		if in == nil {
			continue
		}
		for i, x := range at {
			if leaf == name {
				x += h * s.along[leaf][i]
			}
			in.SetAt(i, x)
		}
	}
	for _, n := range s.noises {
		if in := s.prog.Input(n.name); in != nil {
			for k := range in.F64() {
				in.SetAt(k, 1)
			}
		}
	}
	if err := exec.Run(t.Context(), s.prog); err != nil {
		t.Fatal(err)
	}
	return s.prog.Output("sum").Scalar()
}
