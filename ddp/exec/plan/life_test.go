package plan

import (
	"math/rand/v2"
	"testing"

	"ebtrain/ddp/graph"
)

// What a step writes over what it reads is the same whether its results and operands are
// looked up by root or all gone through.
func TestInPlace(t *testing.T) {
	asked, whole, parts := 0, 0, 0
	for seed := range uint64(100) {
		g, err := random(rand.New(rand.NewPCG(seed, 4)), 40)
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "random", World: 1 + int(seed%2)})
		e := p.ends()
		for i := range p.Steps {
			for _, out := range p.roots(p.Steps[i].Out) {
				for _, in := range p.roots(p.Steps[i].In) {
					if e.lives[out].made != i || e.lives[in].last() != i {
						continue
					}
					wantWhole, wantPart := p.writesOver(i, in, out)
					if got := e.inPlace(i, in, out); got != wantWhole {
						t.Errorf("seed %d, step %d: %d over %d: %v, want %v, in\n%s", seed, i, out, in, got, wantWhole, dump(t, p))
					}
					if got := e.partInPlace(i, in, out); got != wantPart {
						t.Errorf("seed %d, step %d: part of %d over %d: %v, want %v, in\n%s", seed, i, out, in, got, wantPart, dump(t, p))
					}
					asked, whole, parts = asked+1, whole+b2i(wantWhole), parts+b2i(wantPart)
				}
			}
		}
	}
	if whole == 0 || parts == 0 || whole == asked || parts == asked {
		t.Errorf("%d questions, %d wholes and %d parts: want some of each answer", asked, whole, parts)
	}
}

func (p *Plan) roots(values []int) (roots []int) {
	for _, v := range values {
		roots = append(roots, p.Values[v].Root)
	}
	return roots
}

// writesOver says whether step i may write out, or one part of it, over in.
func (p *Plan) writesOver(i, in, out int) (whole, part bool) {
	f, ok := p.Steps[i].Op.(*Fused)
	if !ok || p.Values[in].Bytes() != p.Values[out].Bytes() {
		return false, false
	}
	var stored []int
	wholes := true
	for k := range f.Stores {
		if v := p.Steps[i].Out[k]; p.Values[v].Root == out {
			stored, wholes = append(stored, v), wholes && p.Values[v].Bytes() == p.Values[out].Bytes()
		}
	}
	read := false
	whole, part = len(stored) > 0 && wholes, len(stored) == 1
	for k, v := range p.Steps[i].In {
		if val := &p.Values[v]; val.Root == in {
			read = true
			whole = whole && f.Loads[k].Full() && val.Off == 0 && val.Bytes() == p.Values[in].Bytes()
			part = part && f.Loads[k].Full() && val.Off == p.Values[stored[0]].Off && val.Bytes() == p.Values[stored[0]].Bytes()
		}
	}
	return whole && read, part
}

// A step may write over an operand where each point reads just what it replaces: all of it,
// or the one part that it writes. What is repeated may have as many bytes as what is made,
// in numbers of half the size, and so may an array of which a part is made.
func TestInPlaceCases(t *testing.T) {
	type view struct{ off, n int } // some numbers of an array of 64
	all, front, back := view{0, 64}, view{0, 32}, view{32, 32}
	for _, tt := range []struct {
		name        string
		read        view
		repeated    bool // by a space of twice as many points, whose result is bfloat16
		half        bool // the result is 128 numbers of half the size
		stored      []view
		sum         bool // the result is a sum, not an array
		whole, part bool
	}{
		{"all over all", all, false, false, []view{all}, false, true, true},
		{"a part over the same", back, false, false, []view{back}, false, false, true},
		{"a part over another", back, false, false, []view{front}, false, false, false},
		{"a part over all", front, false, false, []view{all}, false, false, false},
		{"two parts", front, false, false, []view{front, back}, false, false, false},
		{"what is repeated", all, true, false, []view{all}, false, false, false},
		{"a sum", all, false, false, []view{all}, true, false, false},
		{"a part in numbers of half the size", all, false, true, []view{all}, false, false, false},
		{"the other part", all, false, true, []view{{64, 64}}, false, false, false},
	} {
		p := &Plan{Values: []Value{{DType: graph.F32, Dims: graph.D(64), Root: 0}, {DType: graph.F32, Dims: graph.D(64), Root: 1}}}
		show := func(root int, v view) int {
			p.Values = append(p.Values, Value{DType: graph.F32, Dims: graph.D(v.n), Root: root, Off: 4 * v.off})
			return len(p.Values) - 1
		}
		op := &Fused{DType: graph.F32, Dims: graph.D(tt.read.n), Loads: []Access{NewAccess(graph.D(tt.read.n), graph.D(tt.read.n))}}
		s := Step{Op: op, In: []int{show(0, tt.read)}}
		for _, v := range tt.stored {
			s.Out = append(s.Out, show(1, v))
			if !tt.sum {
				op.Stores = append(op.Stores, 0)
			}
		}
		if tt.repeated {
			op.Dims, op.Loads[0] = graph.D(2, 64), NewAccess(graph.D(2, 64), graph.D(1, 64))
			for _, v := range []int{1, s.Out[0]} {
				p.Values[v].DType, p.Values[v].Dims = graph.BF16, graph.D(2, 64)
			}
		}
		if tt.half {
			p.Values[1].DType, p.Values[1].Dims = graph.BF16, graph.D(128)
			for _, v := range s.Out {
				p.Values[v].DType, p.Values[v].Off = graph.BF16, p.Values[v].Off/2
			}
		}
		p.Steps = []Step{s}
		e := p.ends()
		if whole, part := e.inPlace(0, 0, 1), e.partInPlace(0, 0, 1); whole != tt.whole || part != tt.part {
			t.Errorf("%s: in place %v, a part of it %v; want %v and %v", tt.name, whole, part, tt.whole, tt.part)
		}
	}
}

// Two results of a step do not take the place of one operand, though nothing reads the
// first: they are written at the same time.
func TestPlaceIsTakenOnce(t *testing.T) {
	array := func() Value { return Value{DType: graph.F32, Dims: graph.D(64)} }
	p := &Plan{Values: []Value{array(), array(), array(), array()}}
	for v := range p.Values {
		p.Values[v].Root = v
	}
	p.Values[3].Space = Output
	of := func(stores ...int) *Fused {
		return &Fused{DType: graph.F32, Dims: graph.D(64), Loads: []Access{NewAccess(graph.D(64), graph.D(64))}, Stores: stores}
	}
	p.Steps = []Step{{Op: Fill{1}, Out: []int{0}}, {Op: of(0, 0), In: []int{0}, Out: []int{1, 2}}, {Op: of(0), In: []int{2}, Out: []int{3}}}
	p.Allocate()
	if first, second := p.Values[1].Offset, p.Values[2].Offset; first == second {
		t.Errorf("both results lie at %d", first)
	}
	if p.ArenaBytes != 2*256 {
		t.Errorf("an arena of %d bytes: one result has its operand's place", p.ArenaBytes)
	}
}
