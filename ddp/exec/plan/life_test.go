package plan

import (
	"math/rand/v2"
	"testing"
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
	for k := range f.Stores {
		if v := p.Steps[i].Out[k]; p.Values[v].Root == out {
			stored = append(stored, v)
		}
	}
	read := false
	whole, part = len(stored) > 0, len(stored) == 1
	for k, v := range p.Steps[i].In {
		if val := &p.Values[v]; val.Root == in {
			read = true
			whole = whole && f.Loads[k].Full() && val.Off == 0 && val.Bytes() == p.Values[in].Bytes()
			part = part && f.Loads[k].Full() && val.Off == p.Values[stored[0]].Off && val.Bytes() == p.Values[stored[0]].Bytes()
		}
	}
	return whole && read, part
}
