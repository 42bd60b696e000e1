package graph

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
)

// Graph is a finished graph: nodes in topological order, named outputs, and
// the assignments made at the end of a run.
type Graph struct {
	nodes   []Node
	types   []Type  // by ID; types[0] is unused
	nodeOf  []int32 // by ID: the node whose output it is
	outputs []Output
	assigns []Assignment
}

// Nodes are the nodes in topological order. The caller must not change them.
func (g *Graph) Nodes() []Node { return g.nodes }

// Type is the type of a value of the graph; of an ID that is none it may panic.
func (g *Graph) Type(id ID) Type { return g.types[id] }

// NumValues is one more than the largest ID.
func (g *Graph) NumValues() int { return len(g.types) }

// NodeOf is the index in Nodes of the node that makes id.
func (g *Graph) NodeOf(id ID) int { return int(g.nodeOf[id]) }

// Outputs are the named results, in the order of declaration.
func (g *Graph) Outputs() []Output { return g.outputs }

// Assigns are the assignments, in the order of declaration.
func (g *Graph) Assigns() []Assignment { return g.assigns }

// Live marks the nodes that the outputs and assignments need, by index.
func (g *Graph) Live() []bool {
	live := make([]bool, len(g.nodes))
	need := func(id ID) { live[g.nodeOf[id]] = true }
	for _, o := range g.outputs {
		need(o.ID)
	}
	for _, a := range g.assigns {
		need(a.Var)
		need(a.Value)
	}
	for i := len(g.nodes) - 1; i >= 0; i-- {
		if live[i] {
			for _, id := range g.nodes[i].In {
				need(id)
			}
		}
	}
	return live
}

// Dump writes the live nodes as text, one per line, with values numbered in
// order of appearance; it can be read and compared.
func (g *Graph) Dump(w io.Writer) error {
	live, num, next := g.Live(), make([]int, len(g.types)), 0
	for i, n := range g.nodes {
		if !live[i] {
			continue
		}
		var line strings.Builder
		for j, id := range n.Out {
			next++
			num[id] = next
			if j > 0 {
				line.WriteString(", ")
			}
			fmt.Fprintf(&line, "%%%d %v", next, g.types[id])
		}
		fmt.Fprintf(&line, " = %s", n.Op)
		for _, id := range n.In {
			fmt.Fprintf(&line, " %%%d", num[id])
		}
		if n.Scope != "" {
			fmt.Fprintf(&line, "  # %s", n.Scope)
		}
		if _, err := fmt.Fprintln(w, line.String()); err != nil {
			return err
		}
	}
	for _, o := range g.outputs {
		if _, err := fmt.Fprintf(w, "output %q %%%d\n", o.Name, num[o.ID]); err != nil {
			return err
		}
	}
	for _, a := range g.assigns {
		if _, err := fmt.Fprintf(w, "assign %%%d <- %%%d\n", num[a.Var], num[a.Value]); err != nil {
			return err
		}
	}
	return nil
}

// Digest is a hash of Dump: equal graphs, equal digests. Ranks compare it
// before the first step.
func (g *Graph) Digest() [sha256.Size]byte {
	h := sha256.New()
	_ = g.Dump(h) // a hash never fails to take a write
	return [sha256.Size]byte(h.Sum(nil))
}
