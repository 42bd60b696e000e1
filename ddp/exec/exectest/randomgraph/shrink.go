package randomgraph

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// shrinking is a program that fails, getting smaller.
type shrinking struct {
	c   *Checker
	p   *Program
	err error
	end time.Time
}

// shrink makes a program that fails smaller as long as it fails, for a while:
// fewer steps, ranks, outputs and assignments; nodes that become one of their
// operands, or inputs with the values they had (in virtual shards, others).
func (c *Checker) shrink(p *Program, err error, limit time.Duration) (*Program, error) {
	s := &shrinking{c, p, err, time.Now().Add(limit)}
	if p.Shards != nil { // that it fails as a plain program is worth more
		q := *p
		q.Shards, q.local = nil, nil
		s.try(&q)
	}
	for _, change := range []func(*Program){func(q *Program) { q.wild = tamed }, func(q *Program) { q.Steps = 1 }, func(q *Program) { q.Ranks = 1 }} {
		q := *s.p
		change(&q)
		s.try(&q)
	}
	for i := len(s.graph().Assigns()) - 1; i >= 0; i-- {
		e := edit(s.graph())
		e.assigns = without(e.assigns, i)
		s.edited(e, nil)
	}
	for i := len(s.graph().Outputs()) - 1; i >= 0; i-- {
		e := edit(s.graph())
		e.outputs = without(e.outputs, i)
		s.edited(e, nil)
	}
	for s.node() && time.Now().Before(s.end) {
	}
	return s.p, s.err
}

// graph is what is edited.
func (s *shrinking) graph() *graph.Graph {
	if s.p.local != nil {
		return s.p.local
	}
	return s.p.Graph
}

// try takes a program if it fails too.
func (s *shrinking) try(q *Program) bool {
	if time.Now().After(s.end) || !q.possible() {
		return false
	}
	err := s.c.safely(q)
	if err == nil || fatal(err) {
		return false
	}
	s.p, s.err = q, err
	return true
}

// possible says whether the program's ops are for its number of ranks.
func (p *Program) possible() bool {
	return !slices.ContainsFunc(p.Graph.Nodes(), func(n graph.Node) bool { of := graph.RanksOf(n.Op); return of != 0 && of != p.Ranks })
}

// edited tries the program with an edited graph, and fixed values of new inputs.
func (s *shrinking) edited(e *editor, fixed map[place]*exec.Tensor) bool {
	g, err := e.build()
	if err != nil {
		return false
	}
	q := *s.p
	q.Graph, q.fixed = g, maps.Clone(s.p.fixed)
	if q.fixed == nil {
		q.fixed = map[place]*exec.Tensor{}
	}
	maps.Copy(q.fixed, fixed)
	if s.p.local != nil {
		shards := *s.p.Shards
		shards.Split = maps.Clone(shards.Split)
		for _, l := range e.cut {
			shards.Split[l.Name] = true
		}
		shards = shards.Of(g)
		q.Shards, q.local = &shards, g
		if q.Graph, err = ddp.Virtualise(g, shards); err != nil {
			return false
		}
	}
	return s.try(&q)
}

// node makes the program smaller by a node, and says whether that could be.
func (s *shrinking) node() bool {
	g := s.graph()
	live := g.Live()
	var values map[graph.ID]map[place]*exec.Tensor
	if s.p.local == nil {
		values = record(s.c, s.p)
	}
	for i := len(g.Nodes()) - 1; i >= 0; i-- {
		n := g.Nodes()[i]
		if _, leaf := n.Op.(graph.Leaf); leaf || !live[i] {
			continue
		}
		if s.bypass(n) || s.cutOff(n, values) {
			return true
		}
	}
	return false
}

// bypass replaces a node by an operand of its type.
func (s *shrinking) bypass(n graph.Node) bool {
	if len(n.Out) != 1 {
		return false
	}
	for _, in := range n.In {
		if s.graph().Type(in) == s.graph().Type(n.Out[0]) {
			e := edit(s.graph())
			e.alias[n.Out[0]] = in
			if s.edited(e, nil) {
				return true
			}
		}
	}
	return false
}

// cutOff replaces a node by inputs.
func (s *shrinking) cutOff(n graph.Node, values map[graph.ID]map[place]*exec.Tensor) bool {
	e, fixed := edit(s.graph()), map[place]*exec.Tensor{}
	for _, id := range n.Out {
		l := graph.Leaf{Kind: graph.Input, Name: fmt.Sprintf("cut%d.%d", len(s.graph().Nodes()), id), Type: s.graph().Type(id)}
		switch {
		case s.p.local != nil && l.Type.Shape.Rank() == 0, s.p.local == nil && values[id] == nil:
			return false
		}
		for at, t := range values[id] {
			fixed[place{at.rank, at.step, l.Name}] = t
		}
		e.cut[id] = l
	}
	return s.edited(e, fixed)
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
	ids := map[graph.ID]map[place]*exec.Tensor{}
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
	for name, id := range names {
		ids[id] = map[place]*exec.Tensor{}
		for r := range got {
			for step := range p.Steps {
				ids[id][place{rank: r, step: step}] = got[r][fmt.Sprintf("%s of step %d", name, step)]
			}
		}
	}
	return ids
}

func without[E any](list []E, i int) []E {
	return slices.Concat(list[:i], list[i+1:])
}
