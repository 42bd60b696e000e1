package plan

import (
	"slices"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// buckets gives each collective one contiguous piece of bucket memory. An
// input that has no other reader is made there by its producer; others are
// copied. What an AllReduce reduces comes back where it was. What is scattered and
// gathered is one vector, of which this rank's part lies at its place.
func buckets(d *dag) {
	b := &bucketing{edit: d.edit(), uses: make([]int, len(d.Values)), made: make([]bool, len(d.Values)), shown: make([][]int, len(d.Values))}
	for v := range d.Values {
		b.shown[d.Values[v].Root] = append(b.shown[d.Values[v].Root], v)
	}
	for _, a := range d.assigns {
		b.uses[d.Values[a.src].Root]++
	}
	for _, n := range d.nodes {
		for _, v := range n.in {
			b.uses[d.Values[v].Root]++
		}
		for _, v := range n.out {
			b.made[v] = true
		}
	}
	for i, n := range d.nodes { // what a collective makes is in a bucket when another takes it
		if c, ok := collectiveOf(n.op); ok {
			b.bucket(i, n, c)
		}
	}
	b.apply()
}

// bucketing knows the values that there were before it.
type bucketing struct {
	*edit
	uses  []int   // by root: its readers, nodes and assignments
	made  []bool  // by value: by a node
	shown [][]int // by root: the values that show it
}

func (b *bucketing) bucket(i int, n node, c Collective) {
	in, out, bytes := b.layOut(n, c)
	dt := b.Values[n.in[0]].DType
	all := b.add(Value{DType: dt, Dims: graph.D(bytes / dt.Size()), Space: Bucket})
	start := node{op: Start{Collective: c, Bucket: all}, in: slices.Clone(n.in), out: n.out, index: n.index, scope: n.scope}
	for k, v := range n.in {
		root := b.Values[v].Root
		if direct := root < len(b.made) && b.made[root] && b.uses[root] == 1 && b.Values[root].Bytes() == b.Values[v].Bytes(); direct {
			b.rehome(root, all, in[k])
		} else {
			c := b.like(v)
			start.in[k] = c
			b.insertBefore(i, b.copied(v, c, n))
			b.Values[c].Root, b.Values[c].Off = all, in[k]
		}
	}
	for k, v := range n.out {
		b.rehome(v, all, out[k])
	}
	b.replace(i, start)
}

// layOut says where in the bucket each input and output lies, and how long it is.
func (b *bucketing) layOut(n node, c Collective) (in, out []int, bytes int) {
	first := b.Values[n.in[0]].Bytes()
	switch c.Kind {
	case collective.ReduceScatter:
		return []int{0}, []int{b.o.Rank * (first / b.o.World)}, first
	case collective.AllGather:
		return []int{b.o.Rank * first}, []int{0}, first * b.o.World
	}
	for _, v := range n.in {
		in = append(in, bytes)
		bytes += roundUp(b.Values[v].Bytes())
	}
	return in, in, bytes
}

// rehome moves a root, with all its aliases, into a bucket.
func (b *bucketing) rehome(root, bucket, off int) {
	for _, v := range b.shown[root] {
		b.Values[v].Root, b.Values[v].Off = bucket, b.Values[v].Off+off
	}
}

// copied is the node that makes c a copy of v, for n.
func (b *bucketing) copied(v, c int, n node) node {
	copied := node{op: Copy{}, in: []int{v}, out: []int{c}, index: n.index, scope: n.scope}
	if val := b.Values[v]; val.IsConst {
		copied.op, copied.in = Fill{val.Const}, nil
	}
	return copied
}

func roundUp(bytes int) int { return (bytes + Align - 1) / Align * Align }
