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
	e := p.ends()
	for _, a := range p.assigns {
		if e.direct(a) {
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
func (e *ends) direct(a assign) bool {
	r := e.Values[a.src].Root
	root := &e.Values[r]
	if root.Space != Arena && !e.gathered(r) || root.Bytes() != e.Values[a.src].Bytes() || e.lives[r].made == never {
		return false
	}
	at, last := e.lives[r].made, e.lives[a.dst].last()
	return last < at || last == at && (e.inPlace(at, a.dst, r) || e.partInPlace(at, a.dst, r))
}

// gathered says whether a root is the bucket of an AllGather.
func (p *Plan) gathered(root int) bool {
	return p.Values[root].Space == Bucket && slices.ContainsFunc(p.Steps, func(s Step) bool {
		op, ok := s.Op.(Start)
		return ok && op.Bucket == root && op.Kind == collective.AllGather
	})
}

// partInPlace is inPlace for a part of out over the same part of in.
func (e *ends) partInPlace(i, in, out int) bool {
	f, ok := e.Steps[i].Op.(*Fused)
	if !ok || e.Values[in].Bytes() != e.Values[out].Bytes() {
		return false
	}
	off, size := never, 0
	for k := range e.results.of(out) {
		if k < len(f.Stores) {
			if off != never {
				return false
			}
			v := &e.Values[e.Steps[i].Out[k]]
			off, size = v.Off, v.Bytes()
		}
	}
	for k := range e.operands.of(in) {
		if v := &e.Values[e.Steps[i].In[k]]; !f.Loads[k].Full() || v.Off != off || v.Bytes() != size {
			return false
		}
	}
	return off != never
}
