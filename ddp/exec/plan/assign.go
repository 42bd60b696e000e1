package plan

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
// value of the arena, and the steps from the one that makes it on do not read
// the old one.
func (p *Plan) direct(a assign, lives []life) bool {
	r := p.Values[a.src].Root
	root := &p.Values[r]
	if root.Space != Arena || p.Values[a.src].Off != 0 || root.Bytes() != p.Values[a.src].Bytes() || lives[r].made == never {
		return false
	}
	at, last := lives[r].made, lives[a.dst].last()
	return last < at || last == at && p.inPlace(at, a.dst, r)
}
