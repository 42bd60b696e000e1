package plan

// life is when a root is in use.
type life struct {
	made    int   // the step that writes it first, or never
	touched []int // the steps that read or write it, in order
}

const never = -1

// last is the last step that reads or writes it, or never.
func (l *life) last() int {
	if n := len(l.touched); n > 0 {
		return l.touched[n-1]
	}
	return never
}

// lives are the lives of the values that are roots.
func (p *Plan) lives() []life {
	lives := make([]life, len(p.Values))
	for i := range lives {
		lives[i].made = never
	}
	touch := func(v, step int) *life {
		l := &lives[p.Values[v].Root]
		if l.last() != step {
			l.touched = append(l.touched, step)
		}
		return l
	}
	for i := range p.Steps {
		for _, v := range p.Steps[i].In {
			touch(v, i)
		}
		for _, v := range p.Steps[i].Out {
			if l := touch(v, i); l.made == never {
				l.made = i
			}
		}
	}
	return lives
}

// ends are where roots begin and end to be in use, of a plan whose steps stay as they
// are. Groups may have thousands of operands, so what a step does with one root is not
// looked for among all.
type ends struct {
	*Plan
	lives []life // by root
	// by root: the results of the step that makes it, and the operands of the last step
	// that touches it
	results, operands chains[int]
}

func (p *Plan) ends() *ends {
	e := &ends{p, p.lives(), newChains[int](len(p.Values)), newChains[int](len(p.Values))}
	for i := range p.Steps {
		for k, v := range p.Steps[i].Out {
			if r := p.Values[v].Root; e.lives[r].made == i {
				e.results.add(r, k)
			}
		}
		for k, v := range p.Steps[i].In {
			if r := p.Values[v].Root; e.lives[r].last() == i {
				e.operands.add(r, k)
			}
		}
	}
	return e
}

// inPlace says whether step i, which makes out and is the last that touches in (roots),
// may write its result out over its operand in: each point of the iteration space reads
// what it replaces and nothing else of it. A part of out would be no such result: it may be
// of numbers of half the size, and lie where other points read.
func (e *ends) inPlace(i, in, out int) bool {
	f, ok := e.Steps[i].Op.(*Fused)
	if !ok || e.Values[in].Bytes() != e.Values[out].Bytes() {
		return false
	}
	stored, read := false, false
	for k := range e.results.of(out) {
		if e.Values[e.Steps[i].Out[k]].Bytes() != e.Values[out].Bytes() {
			return false
		}
		stored = stored || k < len(f.Stores)
	}
	for k := range e.operands.of(in) {
		v := &e.Values[e.Steps[i].In[k]]
		if !f.Loads[k].Full() || v.Bytes() != e.Values[in].Bytes() {
			return false
		}
		read = true
	}
	return stored && read
}
