package plan

import "ebtrain/ddp/graph"

// buckets gives each AllReduce one contiguous piece of bucket memory. An
// input that has no other reader is made there by its producer; others are
// copied. The outputs lie where the inputs were.
func (l *lowering) buckets() {
	uses := l.uses()
	made := make([]bool, len(l.plan.Values))
	for _, n := range l.nodes {
		if _, ok := n.op.(graph.AllReduce); !ok {
			for _, v := range n.out {
				made[v] = true
			}
		}
	}
	old := l.nodes
	l.nodes = make([]node, 0, len(old))
	for _, n := range old {
		if _, ok := n.op.(graph.AllReduce); ok {
			l.bucket(&n, uses, made)
		}
		l.nodes = append(l.nodes, n)
	}
}

// uses counts, by root, the reads by nodes and assignments.
func (l *lowering) uses() []int {
	uses := make([]int, len(l.plan.Values))
	for _, n := range l.nodes {
		for _, v := range n.in {
			uses[l.plan.Values[v].Root]++
		}
	}
	for _, a := range l.plan.assigns {
		uses[l.plan.Values[a.src].Root]++
	}
	return uses
}

func (l *lowering) bucket(n *node, uses []int, made []bool) {
	l.index, l.scope = n.index, n.scope
	values := func(v int) *Value { return &l.plan.Values[v] }
	dt := values(n.in[0]).DType
	bytes := 0
	offs := make([]int, len(n.in))
	for i, v := range n.in {
		offs[i] = bytes
		bytes += roundUp(values(v).Bytes())
	}
	b := l.add(Value{DType: dt, Dims: graph.D(bytes / dt.Size()), Space: Bucket})
	for i, v := range n.in {
		root := values(v).Root
		direct := !values(v).IsConst && root < len(made) && made[root] && uses[root] == 1 &&
			values(root).Bytes() == values(v).Bytes()
		if !direct {
			n.in[i] = l.packed(v)
			root = n.in[i]
		}
		l.rehome(root, n.out[i], b, offs[i])
	}
	n.op = Start{AllReduce: n.op.(graph.AllReduce), Bucket: b}
}

// rehome moves the roots in and out, with all their aliases, into bucket b.
func (l *lowering) rehome(in, out, b, off int) {
	for k := range l.plan.Values {
		if v := &l.plan.Values[k]; v.Root == in || v.Root == out {
			v.Root, v.Off = b, v.Off+off
		}
	}
}

// packed is a copy of v.
func (l *lowering) packed(v int) int {
	val := l.plan.Values[v]
	c := l.add(Value{DType: val.DType, Dims: val.Dims, Last: val.Last})
	if val.IsConst {
		l.emit(Fill{val.Const}, nil, []int{c})
	} else {
		l.emit(Copy{}, []int{v}, []int{c})
	}
	return c
}

func roundUp(bytes int) int { return (bytes + Align - 1) / Align * Align }
