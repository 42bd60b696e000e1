package randomgraph

import (
	"fmt"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// shrink makes a program that fails smaller as long as it fails, for a while:
// fewer steps, ranks, outputs and assignments; nodes that become inputs with the
// values they had, or one of their operands.
func (c *Checker) shrink(p *Program, err error, limit time.Duration) (*Program, error) {
	end := time.Now().Add(limit)
	try := func(q *Program, g *graph.Graph, buildErr error) bool {
		if buildErr != nil || time.Now().After(end) {
			return false
		}
		q.Graph = g
		if e := c.safely(q); e != nil && !fatal(e) {
			p, err = q, e
			return true
		}
		return false
	}
	if p.Shards != nil { // that it fails as a plain program is worth more
		q := *p
		q.Shards, q.local = nil, nil
		if !try(&q, p.Graph, nil) {
			return p, err
		}
	}
	for _, change := range []func(*Program){func(q *Program) { q.Steps = 1 }, func(q *Program) { q.Ranks = 1 }} {
		q := *p
		change(&q)
		try(&q, p.Graph, nil)
	}
	for i := len(p.Graph.Assigns()) - 1; i >= 0; i-- {
		q, e := *p, edit(p.Graph)
		e.assigns = without(e.assigns, i)
		g, berr := e.build()
		try(&q, g, berr)
	}
	for i := len(p.Graph.Outputs()) - 1; i >= 0; i-- {
		q, e := *p, edit(p.Graph)
		e.outputs = without(e.outputs, i)
		g, berr := e.build()
		try(&q, g, berr)
	}
	for changed := true; changed && time.Now().Before(end); {
		changed = false
		values := record(c, p)
		for i := len(p.Graph.Nodes()) - 1; i >= 0 && i < len(p.Graph.Nodes()); i-- {
			n := p.Graph.Nodes()[i]
			if _, leaf := n.Op.(graph.Leaf); leaf || !p.Graph.Live()[i] {
				continue
			}
			if c.bypass(p, n, try) || c.cutOff(p, n, values, try) {
				changed = true
				break
			}
		}
	}
	return p, err
}

// bypass replaces a node by an operand of its type.
func (c *Checker) bypass(p *Program, n graph.Node, try func(*Program, *graph.Graph, error) bool) bool {
	if len(n.Out) != 1 {
		return false
	}
	for _, in := range n.In {
		if p.Graph.Type(in) == p.Graph.Type(n.Out[0]) {
			q, e := *p, edit(p.Graph)
			e.alias[n.Out[0]] = in
			g, err := e.build()
			if try(&q, g, err) {
				return true
			}
		}
	}
	return false
}

// cutOff replaces a node by inputs with its values.
func (c *Checker) cutOff(p *Program, n graph.Node, values map[graph.ID]map[place]*exec.Tensor, try func(*Program, *graph.Graph, error) bool) bool {
	q, e := *p, edit(p.Graph)
	q.fixed = map[place]*exec.Tensor{}
	for k, t := range p.fixed {
		q.fixed[k] = t
	}
	for _, id := range n.Out {
		if values[id] == nil {
			return false
		}
		name := fmt.Sprintf("cut%d", len(q.fixed))
		for at, t := range values[id] {
			q.fixed[place{at.rank, at.step, name}] = t
		}
		e.cut[id] = graph.Leaf{Kind: graph.Input, Name: name, Type: p.Graph.Type(id)}
	}
	g, err := e.build()
	return try(&q, g, err)
}

// record is the value of each node on each rank at each step, by the reference;
// nothing if it fails.
func record(c *Checker, p *Program) map[graph.ID]map[place]*exec.Tensor {
	e := edit(p.Graph)
	e.outputs = nil
	names := map[string]graph.ID{}
	for i, live := range p.Graph.Live() {
		if !live {
			continue
		}
		for _, id := range p.Graph.Nodes()[i].Out {
			name := fmt.Sprintf("value %d", id)
			names[name] = id
			e.outputs = append(e.outputs, graph.Output{Name: name, ID: id})
		}
	}
	g, err := e.build()
	if err != nil {
		return nil
	}
	q := *p
	q.Graph = g
	got, err := c.execution(&q, referenceTarget(p.Ranks)).run()
	if err != nil {
		return nil
	}
	all := map[graph.ID]map[place]*exec.Tensor{}
	for r := range got {
		for name, id := range names {
			for s := range p.Steps {
				if all[id] == nil {
					all[id] = map[place]*exec.Tensor{}
				}
				all[id][place{rank: r, step: s}] = got[r][fmt.Sprintf("%s of step %d", name, s)]
			}
		}
	}
	return all
}

func without[E any](list []E, i int) []E {
	return append(append([]E{}, list[:i]...), list[i+1:]...)
}
