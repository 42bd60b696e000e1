package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// shadow replays a plan on memory whose bytes hold the number of the root that
// was last written there, and reports every read of something else.
type shadow struct {
	t   *testing.T
	p   *Plan
	mem map[Space]map[int][]int // by space and index
}

func replay(t *testing.T, p *Plan) {
	s := &shadow{t, p, map[Space]map[int][]int{}}
	for _, list := range [][]External{p.Inputs, p.Vars} {
		for _, e := range list {
			s.write(-1, e.Value)
		}
	}
	for i := range p.Steps {
		s.step(i)
	}
}

// region is the bytes of a value.
func (s *shadow) region(v int) []int {
	space, index, off := s.p.View(v)
	size := s.p.ArenaBytes
	switch space {
	case Arena:
		index = 0
	case Bucket:
		index, size = 0, s.p.BucketBytes
	default:
		size = s.p.Values[s.p.Values[v].Root].Bytes()
	}
	if s.mem[space] == nil {
		s.mem[space] = map[int][]int{}
	}
	if s.mem[space][index] == nil {
		s.mem[space][index] = make([]int, size)
	}
	return s.mem[space][index][off : off+s.p.Values[v].Bytes()]
}

func (s *shadow) write(step, v int) {
	r := s.region(v)
	for i := range r {
		r[i] = s.p.Values[v].Root + 1
	}
	if a := s.p.Values[s.p.Values[v].Root].Offset; a%Align != 0 {
		s.t.Errorf("step %d: value %d lies at %d", step, v, a)
	}
}

func (s *shadow) step(i int) {
	st := &s.p.Steps[i]
	for _, v := range st.In {
		for _, owner := range s.region(v) {
			if owner != s.p.Values[v].Root+1 {
				s.t.Fatalf("step %d (%s) reads value %d, but finds root %d instead of %d", i, st.Op, v, owner-1, s.p.Values[v].Root)
			}
		}
	}
	if st.Scratch > 0 {
		mem := s.region2(st.ScratchAt, st.Scratch)
		for k := range mem {
			mem[k] = 0
		}
		for _, v := range st.In {
			for _, owner := range s.region(v) {
				if owner == 0 {
					s.t.Fatalf("step %d: scratch memory overlaps operand %d", i, v)
				}
			}
		}
	}
	_, fused := st.Op.(*Fused)
	_, wait := st.Op.(Wait)
	for _, v := range st.Out {
		s.write(i, v)
	}
	if wait {
		return
	}
	for k, v := range st.Out { // nothing wrote over another result, and only fused steps over operands
		for _, owner := range s.region(v) {
			if owner != s.p.Values[v].Root+1 {
				s.t.Fatalf("step %d: result %d is overwritten", i, k)
			}
		}
	}
	for _, v := range st.In {
		for _, owner := range s.region(v) {
			if owner != s.p.Values[v].Root+1 && !fused {
				s.t.Fatalf("step %d (%s) writes over its operand %d", i, st.Op, v)
			}
		}
	}
}

func (s *shadow) region2(at, n int) []int {
	if s.mem[Arena] == nil {
		s.mem[Arena] = map[int][]int{}
	}
	if s.mem[Arena][0] == nil {
		s.mem[Arena][0] = make([]int, s.p.ArenaBytes)
	}
	return s.mem[Arena][0][at : at+n]
}

// random makes a graph of n random ops on images, matrices and vectors, with
// collectives, outputs and assignments.
func random(r *rand.Rand, n int) (*graph.Graph, error) {
	var b graph.Builder
	image, matrix, vector := graph.T(graph.F32, 2, 3, 4, 4), graph.T(graph.F32, 6, 16), graph.T(graph.F32, 1, 3, 1, 1)
	var vars []graph.ID
	pool := map[graph.Type][]graph.ID{}
	for i, t := range []graph.Type{image, matrix, vector} {
		for k := range 2 {
			v := b.Var(fmt.Sprintf("v%d%d", i, k), t)
			vars = append(vars, v)
			pool[t] = append(pool[t], v)
		}
		pool[t] = append(pool[t], b.Input(fmt.Sprintf("x%d", i), t), b.Full(t, float64(i)))
	}
	w := b.Var("w", graph.T(graph.F32, 3, 3, 3, 3))
	square := b.Var("square", graph.T(graph.F32, 16, 16))
	any := func(t graph.Type) graph.ID {
		p := pool[t]
		return p[max(r.IntN(len(p)), r.IntN(len(p)))]
	}
	types := []graph.Type{image, matrix, vector}
	for range n {
		t := types[r.IntN(3)]
		var y graph.ID
		switch r.IntN(12) {
		case 0:
			y = b.Relu(any(t))
		case 1:
			y = b.Scale(any(t), 0.5)
		case 2, 3:
			y = b.Add(any(t), any(t))
		case 4:
			y = b.Mul(any(t), any(t))
		case 5:
			y = b.Mul(any(image), any(vector))
		case 6:
			y = b.SumKeep(any(image), 0, 2, 3)
		case 7:
			y = b.Conv2D(any(image), w, graph.NewConv(3, 1, 1))
		case 8:
			y = b.MatMul(any(matrix), square, false, r.IntN(2) == 0)
		case 9:
			y = b.Reshape(any(matrix), image.Shape)
			if r.IntN(2) == 0 {
				y = b.Reshape(any(image), matrix.Shape)
			}
		case 10:
			out := b.AllReduce(collective.Sum, "r", any(t), any(vector), any(t))
			pool[t] = append(pool[t], out[0], out[2])
			y = out[1]
		case 11:
			y = b.StopGrad(any(t))
		}
		pool[b.Type(y)] = append(pool[b.Type(y)], y)
	}
	for i, t := range types {
		b.Output(fmt.Sprintf("y%d", i), any(t))
	}
	for _, v := range vars {
		if r.IntN(3) > 0 {
			b.Assign(v, any(b.Type(v)))
		}
	}
	return b.Build()
}

// Random graphs, with random scratch memory, never read what another value
// has overwritten.
func TestMemoryPlan(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, err := random(r, 5+r.IntN(60))
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "random", World: 1 + int(seed%2), Remat: seed%4 >= 2})
		for i := range p.Steps {
			p.Steps[i].Scratch = 8 * r.IntN(20)
		}
		p.Allocate()
		replay(t, p)
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, dump(t, p))
		}
	}
}

// What needs too much memory is known to before anything has a place, mostly to the
// byte, and nothing is refused that fits.
func TestAllocateWithin(t *testing.T) {
	exact := 0
	const graphs = 100
	for seed := range uint64(graphs) {
		r := rand.New(rand.NewPCG(seed, 2))
		g, err := random(r, 5+r.IntN(60))
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "random", World: 1 + int(seed%2)})
		for i := range p.Steps {
			p.Steps[i].Scratch = 8 * r.IntN(20)
		}
		least, ok := p.AllocateWithin(1)
		if ok || p.ArenaBytes+p.BucketBytes != 0 {
			t.Fatalf("seed %d: %d bytes of memory in 1", seed, p.ArenaBytes+p.BucketBytes)
		}
		need, ok := p.AllocateWithin(0)
		if !ok || need != int64(p.ArenaBytes+p.BucketBytes) || least > need || least < need/2 {
			t.Fatalf("seed %d: at least %d bytes, and it takes %d (%v)", seed, least, need, ok)
		}
		if _, ok := p.AllocateWithin(need); !ok {
			t.Errorf("seed %d: %d bytes are refused that it takes", seed, need)
		}
		if _, ok := p.AllocateWithin(need - 1); ok {
			t.Errorf("seed %d: it takes %d bytes, and has fewer", seed, need)
		}
		if least == need {
			exact++
		}
	}
	if exact < graphs/2 {
		t.Errorf("of %d graphs %d take what is known before", graphs, exact)
	}
}

func TestAccess(t *testing.T) {
	for _, c := range []struct {
		name       string
		dims, part graph.Shape
		want       string
		full, one  bool // each point has its own element; all have the same
	}{
		{"the same", graph.D(2, 3, 4), graph.D(2, 3, 4), "<24>", true, false},
		{"one element", graph.D(2, 3, 4), graph.D(1, 1, 1), "<24*>", false, true},
		{"per channel, channels last", graph.D(2, 3, 4), graph.D(1, 1, 4), "<6*,4>", false, false},
		{"per sample", graph.D(2, 3, 4), graph.D(2, 1, 1), "<2,12*>", false, false},
		{"per channel, channels first", graph.D(2, 3, 4), graph.D(1, 3, 1), "<2*,3,4*>", false, false},
		{"axes of extent 1", graph.D(1, 3, 1, 2), graph.D(1, 3, 1, 1), "<3,2*>", false, false},
		{"a scalar", graph.D(), graph.D(), "<>", true, false},
	} {
		if got := NewAccess(c.dims, c.part).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if a := NewAccess(c.dims, c.part); a.Full() != c.full || a.Scalar() != c.one {
			t.Errorf("%s: full %v, one element %v; want %v and %v", c.name, a.Full(), a.Scalar(), c.full, c.one)
		}
	}
}
