package plan

import (
	"slices"

	"ebtrain/ddp/graph"
)

// buckets gives each AllReduce one contiguous piece of bucket memory. An
// input that has no other reader is made there by its producer; others are
// copied. The outputs lie where the inputs were.
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
		if _, ok := n.op.(graph.AllReduce); !ok {
			for _, v := range n.out {
				b.made[v] = true
			}
		}
	}
	for i, n := range d.nodes {
		if op, ok := n.op.(graph.AllReduce); ok {
			b.bucket(i, n, op)
		}
	}
	b.apply()
}

// bucketing knows the values that there were before it.
type bucketing struct {
	*edit
	uses  []int   // by root: its readers, nodes and assignments
	made  []bool  // by value: by something else than a collective
	shown [][]int // by root: the values that show it
}

func (b *bucketing) bucket(i int, n node, op graph.AllReduce) {
	dt, bytes := b.Values[n.in[0]].DType, 0
	offs := make([]int, len(n.in))
	for k, v := range n.in {
		offs[k] = bytes
		bytes += roundUp(b.Values[v].Bytes())
	}
	all := b.add(Value{DType: dt, Dims: graph.D(bytes / dt.Size()), Space: Bucket})
	start := node{op: Start{AllReduce: op, Bucket: all}, in: slices.Clone(n.in), out: n.out, index: n.index, scope: n.scope}
	for k, v := range n.in {
		root := b.Values[v].Root
		if direct := !b.Values[v].IsConst && root < len(b.made) && b.made[root] && b.uses[root] == 1 && b.Values[root].Bytes() == b.Values[v].Bytes(); direct {
			b.rehome(root, all, offs[k])
		} else {
			c := b.like(v)
			start.in[k] = c
			b.insertBefore(i, b.copied(v, c, n))
			b.Values[c].Root, b.Values[c].Off = all, offs[k]
		}
		b.rehome(n.out[k], all, offs[k])
	}
	b.replace(i, start)
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
