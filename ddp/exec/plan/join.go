package plan

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
)

// join makes one convolution of several by the same weights, where none depends on
// another: their images lie behind each other, as those of one batch, and so do their
// results. A network of data and of samples, or a generator of several latents, then
// runs once for all, forwards and backwards, and the gradients of its weights, which
// are added up, are one convolution, too. So a device on which a small convolution
// takes as long as one of twice its images has fewer of them.
//
// An image is made where it is to lie. One that cannot be, an input say, is copied there
// if that is little. It has one place: convolutions by other weights that read it are
// joined in the same order, or not at all.
func join(d *dag) {
	j := &joining{dag: d, maker: d.makers(make([]int, len(d.Values))), of: slices.Repeat([]int{-1}, len(d.nodes)), open: map[groupKey][]int{},
		kept: make([]bool, len(d.Values)), seen: make([]int, len(d.nodes)), left: mostMet * len(d.nodes)}
	j.findOrder()
	for i := range d.nodes {
		if image, weights, ok := convolution(&d.nodes[i]); ok {
			j.offer(i, image, weights)
		}
	}
	l := newLaying(j)
	for _, g := range j.groups {
		if len(g.nodes) > 1 {
			l.convolutions(g)
		}
	}
	l.gradients()
	l.rebuild()
}

// Join puts values that lie behind each other together: its result is all of them. It
// is there for the order of nodes, and no step: what reads the result reads what they
// have written.
type Join struct{}

func (Join) String() string { return "join" }

// convolution says which operands of a node are its image and its weights, if it is a
// convolution of one by the other.
func convolution(n *node) (image, weights int, ok bool) {
	switch n.op.(type) {
	case graph.Conv2D:
		return 0, 1, true
	case graph.Conv2DGradX:
		return 1, 0, true
	}
	return 0, 0, false
}

// joining is the search for what is joined.
type joining struct {
	*dag
	maker  []int // by value
	of     []int // by node: its group, −1 if it is none's
	groups []*group
	open   map[groupKey][]int // groups that more may join, the last first
	kept   []bool             // by value: an image of which gradients of weights are made
	order  []int              // by value: the least maker of it and of those with which they are

	seen []int // by node: the search that met it last
	runs int   // searches
	left int   // nodes that may still be met
}

// group is convolutions by the same weights, none of which depends on another.
type group struct {
	nodes  []int
	points int // of the larger images of all
}

// groupKey is what convolutions that are joined have in common.
type groupKey struct {
	op          fmt.Stringer
	weights     int
	image, made graph.Shape // of one sample
	kept        bool        // for gradients of weights: what is not would live as long
}

// reach is into which part of a graph the convolutions that are joined fit: what comes much
// later than another would begin early, and its images would wait for their readers. Half
// a step apart, the passes of a generator for two losses made the memory of BiDVL's conv32
// larger by a third. In graphs of near nodes it is no matter.
const reach, near = 3, 256

// mostOpen is how many groups of a key are asked; mostMet, how many nodes all searches
// meet at most, for each there is: of chains of thousands of steps by the same weights
// each asks whether it depends on the others.
const mostOpen, mostMet = 4, 1024

// offer puts convolution i into a group.
func (j *joining) offer(i, image, weights int) {
	n := &j.nodes[i]
	x, y := n.in[image], n.out[0]
	points := max(j.Values[x].Dims.Len(), j.Values[y].Dims.Len())
	if points == 0 || points > j.o.Join || !j.movable(y) || !j.movable(x) && !j.little(x, y) {
		return
	}
	key := groupKey{n.op, n.in[weights], j.Values[x].Dims.With(0, 1), j.Values[y].Dims.With(0, 1), j.kept[x] || j.kept[y]}
	far := max(near, j.nodes[len(j.nodes)-1].index/reach)
	for _, k := range j.open[key] {
		if g := j.groups[k]; n.index-j.nodes[g.nodes[0]].index <= far && g.points+points <= j.o.Join && !j.depend(i, g) {
			g.nodes, g.points = append(g.nodes, i), g.points+points
			j.of[i] = k
			return
		}
	}
	j.of[i] = len(j.groups)
	j.groups = append(j.groups, &group{[]int{i}, points})
	j.open[key] = append([]int{j.of[i]}, j.open[key][:min(len(j.open[key]), mostOpen-1)]...)
}

// movable says whether what makes a value can make it elsewhere: it is a whole array of
// intermediate memory that no variable takes, in which parts of 64 bytes stay whole if
// it is kept in half of its size.
func (j *joining) movable(v int) bool {
	root := j.Values[v].Root
	if root >= len(j.maker) || j.maker[root] < 0 {
		return false
	}
	_, travels := collectiveOf(j.nodes[j.maker[root]].op)
	r := &j.Values[root]
	return !travels && r.parent < 0 && r.Root == root && r.Space == Arena && !r.IsConst && r.Bytes() == j.Values[v].Bytes() && r.Bytes()%(2*Align) == 0 &&
		!slices.ContainsFunc(j.assigns, func(a assign) bool { return j.Values[a.src].Root == root })
}

// littleShare is how much smaller than a convolution's result its image is where it may
// be copied to be joined.
const littleShare = 8

// little says whether an image x may be copied, for what makes y of it.
func (j *joining) little(x, y int) bool {
	return !j.Values[x].IsConst && j.Values[x].Bytes()%(2*Align) == 0 && littleShare*j.Values[x].Dims.Len() <= j.Values[y].Dims.Len()
}

// depend says whether node i depends on one of a group, what is joined already counted as
// one node; that it does, too, where there has been searched enough. No node that is in a
// group depends on i, which comes behind all of them.
func (j *joining) depend(i int, g *group) bool {
	j.runs++
	var todo []int
	above := func(k int) {
		for _, v := range j.nodes[k].in {
			if p := j.maker[v]; p >= 0 && j.seen[p] != j.runs {
				j.seen[p] = j.runs
				todo = append(todo, p)
			}
		}
	}
	above(i)
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if j.left--; slices.Contains(g.nodes, k) || j.left < 0 {
			return true
		}
		above(k)
		if with := j.of[k]; with >= 0 {
			for _, m := range j.groups[with].nodes {
				if m != k && j.seen[m] != j.runs {
					j.seen[m] = j.runs
					todo = append(todo, m)
				}
			}
		}
	}
	return false
}

// findOrder finds by what images are in order. Those of a backward pass come in another
// order than those of the forward pass with which they make the gradients of weights,
// where both must lie alike.
func (j *joining) findOrder() {
	j.order = slices.Clone(j.maker)
	for i := range j.nodes {
		if _, ok := j.nodes[i].op.(graph.Conv2DGradW); ok {
			a, b := j.nodes[i].in[0], j.nodes[i].in[1]
			least := min(j.order[a], j.order[b])
			j.order[a], j.order[b] = least, least
			j.kept[a], j.kept[b] = true, true
		}
	}
}
