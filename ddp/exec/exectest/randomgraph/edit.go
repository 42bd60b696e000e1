package randomgraph

import "ebtrain/ddp/graph"

// editor makes a graph from another one.
type editor struct {
	from    *graph.Graph
	outputs []graph.Output
	assigns []graph.Assignment
	cut     map[graph.ID]graph.Leaf // values that become leaves
	alias   map[graph.ID]graph.ID   // values that become another one
}

func edit(g *graph.Graph) *editor {
	return &editor{from: g, outputs: g.Outputs(), assigns: g.Assigns(), cut: map[graph.ID]graph.Leaf{}, alias: map[graph.ID]graph.ID{}}
}

// build makes the graph of what the outputs and assignments need.
func (e *editor) build() (*graph.Graph, error) {
	b, ids := &graph.Builder{}, make([]graph.ID, e.from.NumValues())
	need := make([]bool, len(e.from.Nodes()))
	var want func(id graph.ID)
	want = func(id graph.ID) {
		if to, ok := e.alias[id]; ok {
			want(to)
			return
		}
		n := e.from.NodeOf(id)
		if _, ok := e.cut[id]; ok || need[n] {
			return
		}
		need[n] = true
		for _, in := range e.from.Nodes()[n].In {
			want(in)
		}
	}
	for _, o := range e.outputs {
		want(o.ID)
	}
	for _, a := range e.assigns {
		want(a.Var)
		want(a.Value)
	}
	for i, n := range e.from.Nodes() {
		for _, id := range n.Out {
			if l, ok := e.cut[id]; ok {
				ids[id] = b.Apply(l)[0]
			}
		}
		if need[i] {
			in := make([]graph.ID, len(n.In))
			for k, id := range n.In {
				in[k] = ids[id]
			}
			for k, id := range b.Apply(n.Op, in...) {
				if ids[n.Out[k]] == 0 {
					ids[n.Out[k]] = id
				}
			}
		}
		for _, id := range n.Out {
			if to, ok := e.alias[id]; ok {
				ids[id] = ids[to]
			}
		}
	}
	for _, o := range e.outputs {
		b.Output(o.Name, ids[o.ID])
	}
	for _, a := range e.assigns {
		b.Assign(ids[a.Var], ids[a.Value])
	}
	return b.Build()
}
