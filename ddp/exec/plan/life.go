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

// inPlace says whether step i may write its result out over its operand in
// (roots): each point of the iteration space reads what it replaces and
// nothing else of it.
func (p *Plan) inPlace(i, in, out int) bool {
	f, ok := p.Steps[i].Op.(*Fused)
	if !ok {
		return false
	}
	stored, read := false, false
	for k := range f.Stores {
		stored = stored || p.Values[p.Steps[i].Out[k]].Root == out
	}
	for k, v := range p.Steps[i].In {
		if p.Values[v].Root != in {
			continue
		}
		if !f.Loads[k].Full() || p.Values[v].Off != 0 || p.Values[v].Bytes() != p.Values[in].Bytes() {
			return false
		}
		read = true
	}
	return stored && read && p.Values[in].Bytes() == p.Values[out].Bytes()
}
