package plan

import (
	"cmp"
	"fmt"
	"slices"
)

// laying places what is joined, and makes the nodes that do it.
type laying struct {
	*joining
	shown   map[int][]int // by root: the values that show it
	members map[int][]int // by joint value: what lies in it, in order
	joint   map[int]int   // by value: the joint value in which it lies
	copies  map[int]int   // by value: what lies there in its place, if that is a copy
	made    []node        // new ones
	gone    []bool        // by node
}

func newLaying(j *joining) *laying {
	l := &laying{joining: j, shown: map[int][]int{}, members: map[int][]int{}, joint: map[int]int{}, copies: map[int]int{}, gone: make([]bool, len(j.nodes))}
	for v := range j.Values {
		l.shown[j.Values[v].Root] = append(l.shown[j.Values[v].Root], v)
	}
	return l
}

// convolutions makes one of a group, if its images can be placed.
func (l *laying) convolutions(g *group) {
	image, _, _ := convolution(&l.nodes[g.nodes[0]])
	of := func(i int) int { return l.nodes[i].in[image] }
	slices.SortStableFunc(g.nodes, func(a, b int) int { return cmp.Compare(l.order[of(a)], l.order[of(b)]) })
	var images, results []int
	for _, i := range g.nodes {
		images, results = append(images, of(i)), append(results, l.nodes[i].out[0])
	}
	may := func(v int) bool { return l.movable(v) || l.little(v, results[slices.Index(images, v)]) }
	placed := func(v int) bool { return !l.movable(v) } // since it was offered, as it is or in other extents
	if !l.fit(images, may) || slices.ContainsFunc(results, placed) {
		return
	}
	first := l.first(g.nodes)
	one := l.nodes[first]
	one.in = slices.Clone(one.in)
	one.in[image] = l.together(images, first)
	y := l.place(results)
	one.out = []int{y}
	for _, v := range results {
		l.Values[v].parent = y
	}
	l.made = append(l.made, one)
	for _, i := range g.nodes {
		l.gone[i] = true
	}
}

// first is the node that comes first in the graph.
func (l *laying) first(nodes []int) int {
	return slices.MinFunc(nodes, func(a, b int) int { return cmp.Compare(l.nodes[a].index, l.nodes[b].index) })
}

// fit says whether values lie behind each other, or can be made to: may says which can
// be moved or copied there.
func (l *laying) fit(values []int, may func(v int) bool) bool {
	if _, ok := l.neighbours(values); ok {
		return true
	}
	roots := map[int]bool{}
	for _, v := range values {
		if _, placed := l.joint[v]; placed || !may(v) || roots[l.Values[v].Root] {
			return false
		}
		roots[l.Values[v].Root] = true
	}
	return true
}

// neighbours is where in a joint value the values lie behind each other, in order.
func (l *laying) neighbours(values []int) (at int, ok bool) {
	joint, ok := l.joint[values[0]]
	if !ok {
		return 0, false
	}
	all := l.members[joint]
	at = slices.Index(all, values[0])
	return at, at+len(values) <= len(all) && slices.Equal(all[at:at+len(values)], values)
}

// together is the value that is all of values, which fit, as of node i.
func (l *laying) together(values []int, i int) int {
	if at, ok := l.neighbours(values); ok {
		return l.part(values, at, i)
	}
	n := &l.nodes[i]
	in := slices.Clone(values)
	for k, v := range values {
		if !l.movable(v) {
			in[k] = l.like(v)
			l.shown[in[k]] = []int{in[k]}
			l.made = append(l.made, node{op: Copy{}, in: []int{v}, out: in[k : k+1 : k+1], index: n.index, scope: n.scope})
		}
	}
	all := l.place(in)
	for k, v := range values {
		if v != in[k] { // whoever wants it together with these again finds its copy
			l.joint[v], l.copies[v] = all, in[k]
		}
	}
	l.members[all] = values
	l.join(in, all, i)
	return all
}

// join notes that who reads all waits for those that lie in it.
func (l *laying) join(in []int, all, i int) {
	n := &l.nodes[i]
	l.made = append(l.made, node{op: Join{}, in: in, out: []int{all}, index: n.index, scope: n.scope})
}

// part is the value that is neighbours in a joint value, from member at on, as of node i.
// Who reads it waits for those neighbours alone, as the others may be made of what that
// makes.
func (l *laying) part(values []int, at, i int) int {
	joint := l.joint[values[0]]
	all := l.members[joint]
	if len(values) == len(all) {
		return joint
	}
	off, n := 0, 0
	for k, v := range all[:at+len(values)] {
		if k < at {
			off += l.Values[v].Bytes()
		} else {
			n += l.Values[v].Dims.At(0)
		}
	}
	p := l.add(Value{DType: l.Values[joint].DType, Dims: l.Values[joint].Dims.With(0, n), Last: l.Values[joint].Last})
	l.Values[p].Root, l.Values[p].Off = joint, off
	in := slices.Clone(values)
	for k, v := range in {
		if c, ok := l.copies[v]; ok {
			in[k] = c
		}
	}
	l.join(in, p, i)
	return p
}

// place makes a joint value, in which the values lie, each with all that shows it.
func (l *laying) place(values []int) int {
	first, n := l.Values[values[0]], 0
	for _, v := range values {
		n += l.Values[v].Dims.At(0)
	}
	all := l.add(Value{DType: first.DType, Dims: first.Dims.With(0, n), Last: first.Last})
	off := 0
	for _, v := range values { // none of another's root
		for _, w := range l.shown[l.Values[v].Root] {
			l.Values[w].Root, l.Values[w].Off = all, l.Values[w].Off+off
		}
		off += l.Values[v].Bytes()
		l.joint[v] = all
	}
	l.members[all] = values
	return all
}

// rebuild puts the nodes in order: as they were, each behind what it needs. None needs
// itself.
func (l *laying) rebuild() {
	if len(l.made) == 0 {
		return
	}
	var all []node
	for i, n := range l.nodes {
		if !l.gone[i] {
			all = append(all, n)
		}
	}
	all = append(all, l.made...)
	old := l.dag.nodes
	l.dag.nodes = all
	maker := l.dag.makers(make([]int, len(l.Values)))
	sorted, begun, put := make([]node, 0, len(all)), make([]bool, len(all)), make([]bool, len(all))
	var visit func(i int)
	visit = func(i int) {
		switch {
		case put[i]:
			return
		case begun[i]:
			panic(fmt.Sprintf("plan: node %d (%v) waits for itself", i, all[i].op))
		}
		begun[i] = true
		for _, v := range all[i].in {
			if p := maker[v]; p >= 0 {
				visit(p)
			}
		}
		sorted, put[i] = append(sorted, all[i]), true
	}
	for i := range all {
		visit(i)
	}
	l.dag.nodes, l.dag.spare = sorted, old
}

// dropJoins takes the joins out of the steps.
func dropJoins(steps []Step) []Step {
	return slices.DeleteFunc(steps, func(s Step) bool { _, is := s.Op.(Join); return is })
}
