package plan

import "ebtrain/ddp/graph"

// call is the identity of a computation.
type call struct {
	op graph.Op
	in [3]graph.ID
	n  int
}

// cse says whether the outputs of n show what other values show: those of a StopGrad, of a
// collective of one rank (an AllReduce: see Options.Deterministic), and of a computation or
// collective that is the same once these are seen through, on all ranks alike. If not, it
// returns the node to lower.
func (l *lowering) cse(n graph.Node) (graph.Node, bool) {
	switch n.Op.(type) {
	case graph.StopGrad:
		l.same[n.Out[0]] = l.same[n.In[0]]
		return n, true
	case graph.AllReduce:
		if l.o.World <= 1 && !l.o.Deterministic {
			for i, id := range n.In {
				l.same[n.Out[i]] = l.same[id]
			}
			return n, true
		}
	case graph.ReduceScatter, graph.AllGather, graph.Part, graph.Placed:
		if l.o.World <= 1 {
			l.same[n.Out[0]] = l.same[n.In[0]]
			return n, true
		}
	}
	k := call{op: n.Op, n: len(n.In)}
	if k.n > len(k.in) {
		return n, false
	}
	for i, id := range n.In {
		k.in[i] = l.same[id]
	}
	l.ofResult(&k)
	if out, ok := l.known[k]; ok {
		for i, id := range n.Out {
			l.same[id] = out[i]
		}
		return n, true
	}
	l.known[k] = n.Out
	n.In = append([]graph.ID(nil), k.in[:k.n]...)
	return n, false
}

// ofResult lets the derivative of a rectifier read the rectifier's result, which
// has the same sign, instead of its operand: the result is kept anyway by the
// layers above, and the operand need not be.
func (l *lowering) ofResult(k *call) {
	u, ok := k.op.(graph.Unary)
	if !ok {
		return
	}
	of := graph.Unary{Fn: graph.Relu}
	switch u.Fn {
	case graph.Step:
	case graph.LeakyStep:
		if u.A() < 0 {
			return
		}
		of = graph.Unary{Fn: graph.LeakyRelu, Bits: u.Bits}
	default:
		return
	}
	if out, ok := l.known[call{op: of, in: k.in, n: 1}]; ok {
		k.in[0] = out[0]
	}
}
