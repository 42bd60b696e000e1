package plan

import "slices"

// Chains are the steps of an allocated plan in groups, each of which a device can do
// in one launch: fused steps of at most so many points that each read what one of
// the group before it made, in order, are one group; every other step is a group of
// its own. deps is, by group, which groups must be complete before it begins, of
// which none follows from others. Groups are in an order that deps allows.
func (p *Plan) Chains(points int) (groups, deps [][]int) {
	return p.chains(func(i int) bool { return p.short(i, points) })
}

// chains are Chains of the steps that are short.
func (p *Plan) chains(short func(step int) bool) (groups, deps [][]int) {
	steps := p.Deps()
	c := &chaining{short: short, of: make([]int, len(steps)), above: make([]set, 0, len(steps))}
	for i, list := range steps {
		g := -1
		if short(i) {
			g = c.chain(list)
		}
		c.put(i, g, list, len(steps))
	}
	return c.inOrder(steps)
}

// short says whether step i is fused and of at most so many points.
func (p *Plan) short(i, points int) bool {
	f, ok := p.Steps[i].Op.(*Fused)
	return ok && f.Dims.Len() <= points
}

// chaining is groups under construction.
type chaining struct {
	short  func(step int) bool
	groups [][]int
	of     []int // by step: its group
	above  []set // by group: the groups that it depends on, however far
}

// chain is the group that a short step with those dependencies can join, -1 if none:
// the others that it depends on must not themselves depend on the group.
func (c *chaining) chain(deps []int) int {
	for _, j := range slices.Backward(deps) {
		g := c.of[j]
		if c.short(j) && !slices.ContainsFunc(deps, func(d int) bool { return c.of[d] != g && c.above[c.of[d]].has(g) }) {
			return g
		}
	}
	return -1
}

// put puts step i into group g, or into a new one if that is -1.
func (c *chaining) put(i, g int, deps []int, steps int) {
	if g < 0 {
		g = len(c.groups)
		c.groups, c.above = append(c.groups, nil), append(c.above, make(set, steps/64+1))
	}
	c.groups[g], c.of[i] = append(c.groups[g], i), g
	for _, d := range deps {
		if h := c.of[d]; h != g {
			c.above[g].add(h, c.above[h])
		}
	}
	for h, above := range c.above { // what depends on the group depends on all of that
		if h != g && above.has(g) {
			above.add(g, c.above[g])
		}
	}
}

// inOrder numbers the groups so that none depends on a later one.
func (c *chaining) inOrder(steps [][]int) (groups, deps [][]int) {
	below := make([]int, len(c.groups)) // by group: how many it depends on
	for g, above := range c.above {
		for h := range c.groups {
			below[g] += b2i(above.has(h))
		}
	}
	order := make([]int, len(c.groups))
	for g := range order {
		order[g] = g
	}
	// a group depends on more than any that it depends on
	slices.SortStableFunc(order, func(a, b int) int { return below[a] - below[b] })
	number := make([]int, len(order))
	for n, g := range order {
		number[g] = n
	}
	for _, g := range order {
		var found []int
		for _, i := range c.groups[g] {
			for _, d := range steps[i] {
				if c.of[d] != g {
					found = append(found, number[c.of[d]])
				}
			}
		}
		groups, deps = append(groups, c.groups[g]), append(deps, found)
	}
	reach := make([]set, len(groups))
	for n := range groups {
		deps[n], reach[n] = direct(deps[n], reach, n)
	}
	return groups, deps
}
