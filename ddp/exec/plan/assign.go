package plan

// assign is a variable (a value) and the value that it takes.
type assign struct{ dst, src int }

// assign makes values in their variables where no later step reads the old
// value. The others are copied there by last steps.
func (p *Plan) assign() {
	m := newMemory(p)
	for _, a := range p.assigns {
		if m.direct(a) {
			r := &p.Values[p.Values[a.src].Root]
			r.Space, r.Index = Var, p.Values[a.dst].Index
			continue
		}
		p.Steps = append(p.Steps, Step{Op: Copy{}, In: []int{a.src}, Out: []int{a.dst}})
	}
	p.assigns = nil
}

// direct says whether the value can be made in the variable: it is a whole
// value of the arena, and the steps from the one that makes it on do not read
// the old one.
func (m *memory) direct(a assign) bool {
	r := m.Values[a.src].Root
	root := &m.Values[r]
	if root.Space != Arena || m.Values[a.src].Off != 0 || root.Bytes() != m.Values[a.src].Bytes() || m.first[r] == never {
		return false
	}
	at := m.first[r]
	return m.last[a.dst] < at || m.last[a.dst] == at && m.inPlace(at, a.dst, r)
}
