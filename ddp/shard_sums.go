package ddp

import (
	"slices"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// A sum of all elements of a gradient, as in its reported norm, is the one reader of all
// of it that parts are enough for: each rank sums its own, and the ranks' small sums are
// added up. The sum is rounded otherwise then. So it is done for what is reported alone,
// and for gradients that could not be scattered without.

// reportedSums marks, by value, the sums of all elements of what follows from reduced
// gradients, of which nothing but outputs follow: no variable, and no collective.
func reportedSums(g *graph.Graph, live []bool) []bool {
	sums, some, acts := make([]bool, g.NumValues()), false, acting(g, live)
	vanishes := overGradients(g, live, func(graph.ID) bool { return true })
	for i, n := range g.Nodes() {
		if op, ok := n.Op.(graph.Reduce); ok && live[i] && op.Fn == graph.ReduceSum {
			out := n.Out[0]
			sums[out] = g.Type(out).Shape.Len() == 1 && vanishes[n.In[0]] && !acts[out]
			some = some || sums[out]
		}
	}
	if !some {
		return nil
	}
	return sums
}

// acting marks, by value, what variables and collectives follow from.
func acting(g *graph.Graph, live []bool) []bool {
	acts := make([]bool, g.NumValues())
	for _, a := range g.Assigns() {
		acts[a.Value] = true
	}
	for i, n := range slices.Backward(g.Nodes()) {
		if !live[i] {
			continue
		}
		act := slices.ContainsFunc(n.Out, func(id graph.ID) bool { return acts[id] })
		switch n.Op.(type) {
		case graph.AllReduce, graph.ReduceScatter, graph.AllGather:
			act = true
		}
		for _, id := range n.In {
			acts[id] = acts[id] || act
		}
	}
	return acts
}

// overGradients marks, by value, what is computed element by element from such results
// of AllReduces alone, and is zero where they are: their parts may be padded with zeros.
func overGradients(g *graph.Graph, live []bool, such func(graph.ID) bool) []bool {
	over := make([]bool, g.NumValues())
	for i, n := range g.Nodes() {
		if !live[i] {
			continue
		}
		if _, ok := n.Op.(graph.AllReduce); ok {
			for _, id := range n.Out {
				over[id] = such(id)
			}
			continue
		}
		if !keepsZero(n.Op) || !elementwise(g, n) {
			continue
		}
		over[n.Out[0]] = !slices.ContainsFunc(n.In, func(id graph.ID) bool { return !over[id] })
	}
	return over
}

// keepsZero says whether an op makes zero of zeros.
func keepsZero(op graph.Op) bool {
	switch op := op.(type) {
	case graph.Unary:
		return op.Fn == graph.Square || op.Fn == graph.Abs || op.Fn == graph.Scale || op.Fn == graph.Neg
	case graph.Binary:
		return op.Fn == graph.Add || op.Fn == graph.Sub || op.Fn == graph.Mul
	case graph.Cast, graph.StopGrad:
		return true
	}
	return false
}

// dropSums leaves those sums of parts for which gradients are scattered that the
// optimiser reads in parts, and says whether there were others.
func (r *region) dropSums() (dropped bool) {
	if r.sums == nil {
		return false
	}
	scattered := overGradients(r.g, r.live, func(id graph.ID) bool { return r.moves[id] && !r.gathers(id) })
	for i, n := range r.g.Nodes() {
		if r.live[i] && r.sums[n.Out[0]] && !scattered[n.In[0]] {
			r.sums[n.Out[0]], dropped = false, true
		}
	}
	return dropped
}

// report marks, by node, what follows from sums of parts.
func (r *region) report() []bool {
	reports := make([]bool, len(r.g.Nodes()))
	for i, n := range r.g.Nodes() {
		reports[i] = r.live[i] && slices.ContainsFunc(n.In, func(id graph.ID) bool {
			return r.isSum(id) || reports[r.g.NodeOf(id)]
		})
	}
	return reports
}

// isSum says whether a value is a sum that is made of parts.
func (r *region) isSum(id graph.ID) bool { return r.sums != nil && r.sums[id] }

// sum adds up the rank's part of what n does.
func (s *sharder) sum(n graph.Node) {
	out := n.Out[0]
	s.part[out] = s.to.Sum(s.partOf(n.In[0]))
	s.summed = append(s.summed, out)
}

// addSums adds up the ranks' sums: those of one type travel together.
func (s *sharder) addSums() {
	for len(s.summed) > 0 && s.to.Err() == nil {
		typ := s.g.Type(s.summed[0]).DType
		var ids, mine, rest []graph.ID
		for _, id := range s.summed {
			if s.g.Type(id).DType != typ {
				rest = append(rest, id)
				continue
			}
			ids, mine = append(ids, id), append(mine, s.part[id])
		}
		for k, sum := range s.to.AllReduce(collective.Sum, "sums of gradients", mine...) {
			s.all[ids[k]] = s.to.Reshape(sum, s.g.Type(ids[k]).Shape)
		}
		s.summed = rest
	}
}
