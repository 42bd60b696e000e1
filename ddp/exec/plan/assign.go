package plan

import (
	"slices"

	"ebtrain/collective"
)

// assign is a variable (a value) and the value that it takes.
type assign struct{ dst, src int }

// assign makes values in their variables where no later step reads the old
// value. The others are copied there by last steps.
func (p *Plan) assign() {
	lives := p.lives()
	for _, a := range p.assigns {
		if p.direct(a, lives) {
			r := &p.Values[p.Values[a.src].Root]
			r.Space, r.Index = Var, p.Values[a.dst].Index
			continue
		}
		p.Steps = append(p.Steps, Step{Op: Copy{}, In: []int{a.src}, Out: []int{a.dst}})
	}
	p.assigns = nil
}

// direct says whether the value can be made in the variable: it is a whole
// value of the arena, or what an AllGather makes, and the steps from the one that
// makes it, or this rank's part of it, on do not read the old one.
func (p *Plan) direct(a assign, lives []life) bool {
	r := p.Values[a.src].Root
	root := &p.Values[r]
	if root.Space != Arena && !p.gathered(r) || p.Values[a.src].Off != 0 || root.Bytes() != p.Values[a.src].Bytes() || lives[r].made == never {
		return false
	}
	at, last := lives[r].made, lives[a.dst].last()
	return last < at || last == at && (p.inPlace(at, a.dst, r) || p.partInPlace(at, a.dst, r))
}

// gathered says whether a root is the bucket of an AllGather.
func (p *Plan) gathered(root int) bool {
	return p.Values[root].Space == Bucket && slices.ContainsFunc(p.Steps, func(s Step) bool {
		op, ok := s.Op.(Start)
		return ok && op.Bucket == root && op.Kind == collective.AllGather
	})
}

// partInPlace says whether step i may write a part of out over the same part of in
// (roots): each point of the iteration space reads what it replaces and nothing else
// of it.
func (p *Plan) partInPlace(i, in, out int) bool {
	f, ok := p.Steps[i].Op.(*Fused)
	if !ok || p.Values[in].Bytes() != p.Values[out].Bytes() {
		return false
	}
	off, size := never, 0
	for k := range f.Stores {
		if v := &p.Values[p.Steps[i].Out[k]]; v.Root == out {
			if off != never {
				return false
			}
			off, size = v.Off, v.Bytes()
		}
	}
	for k, v := range p.Steps[i].In {
		if val := &p.Values[v]; val.Root == in && (!f.Loads[k].Full() || val.Off != off || val.Bytes() != size) {
			return false
		}
	}
	return off != never
}
