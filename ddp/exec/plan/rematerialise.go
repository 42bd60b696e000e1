package plan

import (
	"slices"

	"ebtrain/ddp/graph"
)

// rematerialise lowers the peak of the planned memory by computing values
// again: where most is in use, a value that waits for a later reader is
// dropped, and the step that made it is repeated right before that reader. The
// repeated step is the same op on the same operands, so no bit of any result
// changes.
//
// It works on the schedule and knows nothing else: levels, layers and backward
// passes are no part of it. It goes on as long as the step at which most is in
// use can be relieved and the peak rises nowhere else.
func rematerialise(p *Plan) {
	r := newRematerialisation(p)
	for range len(p.Steps) {
		if !r.relieve() {
			break
		}
	}
}

type rematerialisation struct {
	*Plan
	pinned map[int]bool // roots that are assigned at the end
}

// leastGain is the least share of the peak that is worth a step: 1/leastGain.
const leastGain = 256

func newRematerialisation(p *Plan) *rematerialisation {
	r := &rematerialisation{Plan: p, pinned: map[int]bool{}}
	for _, a := range p.assigns {
		r.pinned[p.Values[a.src].Root] = true
	}
	return r
}

// inUse is the bytes in use at every step.
func (r *rematerialisation) inUse(lives []life) []int {
	bytes := make([]int, len(r.Steps)+1) // differences at first
	for root := range lives {
		if l := &lives[root]; len(l.touched) > 0 && r.planned(root) {
			bytes[l.touched[0]] += r.Values[root].Bytes()
			bytes[r.end(root, l)+1] -= r.Values[root].Bytes()
		}
	}
	for i := range r.Steps {
		bytes[i+1] += bytes[i]
	}
	return bytes[:len(r.Steps)]
}

func (r *rematerialisation) planned(root int) bool {
	s := r.Values[root].Space
	return s == Arena || s == Bucket
}

// end is the last step at which a root is in use.
func (r *rematerialisation) end(root int, l *life) int {
	if r.pinned[root] {
		return len(r.Steps) - 1
	}
	return l.last()
}

// repetition is a plan: step made is repeated before step at, and what it
// makes is dropped after step from.
type repetition struct {
	root, made, from, at int
	step                 Step
}

// relieve drops one value at the step where most is in use, and says whether
// it found one.
func (r *rematerialisation) relieve() bool {
	lives := r.lives()
	inUse := r.inUse(lives)
	if len(inUse) == 0 {
		return false
	}
	peak := slices.Max(inUse)
	full := slices.Index(inUse, peak)
	var best repetition
	gain := peak / leastGain
	for root := range r.Values { // in order: equal graphs give equal plans
		l := &lives[root]
		if r.Values[root].Space != Arena || r.Values[root].Root != root || l.made == never || r.pinned[root] {
			continue
		}
		k, hit := slices.BinarySearch(l.touched, full)
		if hit || k == 0 || k == len(l.touched) {
			continue // it is at work there, or not in use
		}
		a := repetition{root: root, made: l.made, from: l.touched[k-1], at: l.touched[k]}
		if !r.repeatable(&a) {
			continue
		}
		if g := r.gain(a, lives, inUse, full, gain); g > gain {
			best, gain = a, g
		}
	}
	if best.step.Op == nil {
		return false
	}
	r.repeat(best)
	return true
}

// repeatable says whether the step that makes a's value costs about as much as
// reading and writing it, and how it is repeated for this value alone.
func (r *rematerialisation) repeatable(a *repetition) bool {
	s := &r.Steps[a.made]
	switch op := s.Op.(type) {
	case *Fused:
		k := slices.Index(s.Out, a.root)
		if k < 0 || k >= len(op.Stores) {
			return false
		}
		code, in := op.only(k, s.In)
		a.step = Step{Op: code, In: in, Scope: s.Scope}
		return true
	case graph.Upsample2D, graph.SumUnpool2D, graph.SumPool2D, graph.Transpose, graph.Slice, graph.Pad, graph.Concat, Copy:
		a.step = Step{Op: s.Op, In: s.In, Scope: s.Scope}
		return len(s.Out) == 1 && s.Out[0] == a.root
	}
	return false
}

// gain is the number of bytes less in use at step full, where most is in use,
// if a is done; 0 if that is at most least or lifts another step to that peak.
func (r *rematerialisation) gain(a repetition, lives []life, inUse []int, full, least int) int {
	kept, ok := r.extensions(a, lives)
	if !ok {
		return 0
	}
	gain := r.Values[a.root].Bytes()
	for _, k := range kept {
		if k.end < full {
			gain -= k.bytes
		}
	}
	if gain <= least || r.lifts(a, kept, inUse, inUse[full]) {
		return 0
	}
	return gain
}

// extension is an operand of a repetition that must be kept for it: end is the last step at
// which it is in use without.
type extension struct{ end, bytes int }

// extensions are those of a; false if it may not be done at all, because a variable that it
// reads might not be assigned in place any more.
func (r *rematerialisation) extensions(a repetition, lives []life) (kept []extension, ok bool) {
	for _, v := range a.step.In {
		root := r.Values[v].Root
		l := &lives[root]
		if r.Values[root].Space == Var && l.last() < a.at {
			return nil, false
		}
		if end := r.end(root, l); r.planned(root) && end < a.at {
			kept = append(kept, extension{end, r.Values[root].Bytes()})
		}
	}
	return kept, true
}

// lifts says whether operands that are kept for a lift a step to the peak.
func (r *rematerialisation) lifts(a repetition, kept []extension, inUse []int, peak int) bool {
	from := a.at // of what is kept
	for _, k := range kept {
		from = min(from, k.end)
	}
	for i := from + 1; i <= a.at; i++ {
		change := 0
		for _, k := range kept {
			if i > k.end {
				change += k.bytes
			}
		}
		if i > a.from && i < a.at {
			change -= r.Values[a.root].Bytes()
		}
		if change > 0 && inUse[i]+change >= peak {
			return true
		}
	}
	return false
}

// repeat does a.
func (r *rematerialisation) repeat(a repetition) {
	val := r.Values[a.root]
	id := len(r.Values)
	val.Root, val.parent, val.bcast = id, noParent, noParent
	r.Values = append(r.Values, val)
	views := map[int]int{a.root: id} // value that shows the root → that shows the copy
	for i := a.at; i < len(r.Steps); i++ {
		s := &r.Steps[i]
		s.In = r.moved(s.In, a.root, views)
	}
	a.step.Out = []int{id}
	r.Steps = slices.Insert(r.Steps, a.at, a.step)
}

// moved are values with those of root replaced by those of its copy.
func (r *rematerialisation) moved(in []int, root int, views map[int]int) []int {
	if !slices.ContainsFunc(in, func(v int) bool { return r.Values[v].Root == root }) {
		return in
	}
	out := slices.Clone(in)
	for k, v := range in {
		if r.Values[v].Root != root {
			continue
		}
		c, ok := views[v]
		if !ok {
			val := r.Values[v]
			val.Root, val.parent, val.bcast = views[root], noParent, noParent
			c = len(r.Values)
			r.Values = append(r.Values, val)
			views[v] = c
		}
		out[k] = c
	}
	return out
}

// only is the part of f that store k needs, and its operands of in.
func (f *Fused) only(k int, in []int) (*Fused, []int) {
	code := &Fused{DType: f.DType, Dims: f.Dims}
	first := len(f.Loads) + len(f.Consts)
	needed := make([]bool, f.Registers())
	needed[f.Stores[k]] = true
	for i := len(f.Code) - 1; i >= 0; i-- {
		if needed[first+i] {
			for _, reg := range f.Code[i].operands() {
				needed[reg] = true
			}
		}
	}
	number := make([]int, f.Registers())
	var operands []int
	n := 0
	for reg := range number {
		if !needed[reg] {
			continue
		}
		number[reg] = n
		n++
		switch {
		case reg < len(f.Loads):
			code.Loads = append(code.Loads, f.Loads[reg])
			operands = append(operands, in[reg])
		case reg < first:
			code.Consts = append(code.Consts, f.Consts[reg-len(f.Loads)])
		default:
			c := f.Code[reg-first]
			c.X, c.Y, c.Z = number[c.X], number[c.Y], number[c.Z]
			code.Code = append(code.Code, c)
		}
	}
	code.Stores = []int{number[f.Stores[k]]}
	return code, operands
}

// operands are the registers that c reads.
func (c Instr) operands() []int {
	switch c.Op.(type) {
	case graph.Binary:
		return []int{c.X, c.Y}
	case graph.Select:
		return []int{c.X, c.Y, c.Z}
	}
	return []int{c.X}
}
