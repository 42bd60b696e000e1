package randomgraph

import (
	"fmt"
	"hash/fnv"
	"strings"

	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// Program is a graph and how it is run.
type Program struct {
	Graph *graph.Graph
	Ranks int
	Steps int
	// Shards is set where Graph is a data-parallel step that virtual shards may
	// share; Graph itself is then that of all shards on one rank.
	Shards *ddp.Shards
	local  *graph.Graph // of one shard
	choice int          // of targets
	wild   wildness
	// State are the variables of an optimiser that the ranks may share out.
	State map[string]bool

	fixed map[place]*exec.Tensor // values of inputs that stand for cut nodes
}

// place names the value of a leaf in a run.
type place struct {
	rank, step int
	name       string
}

// value is that of a leaf on a rank, before a step; variables have theirs before
// step 0, the same on all ranks. It is a function of the names and the type.
func (p *Program) value(rank, step int, l graph.Leaf) *exec.Tensor {
	if t := p.fixed[place{rank, step, l.Name}]; t != nil {
		return t
	}
	if l.Kind == graph.Var {
		rank, step = 0, 0
	}
	h := fnv.New64a()
	h.Write([]byte(l.Name))
	n := philox.Name{Seed: h.Sum64(), Purpose: philox.Testing, Step: uint32(step), Sample: uint32(rank)}
	t := exec.NewTensor(l.Type)
	v := make([]float64, l.Type.Shape.Len())
	switch {
	case l.Type == graph.KeyType && strings.HasPrefix(l.Name, "key"):
		v = []float64{float64(n.Intn(0, 1000)), float64(step), float64(rank * 16)}
	case strings.HasPrefix(l.Name, "index"): // of rows or pixels: see grower.index
		var below int
		if _, err := fmt.Sscanf(l.Name, "index%d", &below); err != nil {
			below = 1
		}
		for i := range v {
			v[i] = float64(n.Intn(i, max(below, 1)))
		}
	case l.Type.DType.IsFloat():
		n.Normal(v)
		for i := range v {
			switch k := n.Intn(i, 40); {
			case k == 0:
				v[i] = 0
			case k < 3:
				v[i] = float64(k)
			default:
				v[i] = max(-3, min(3, v[i]))
			}
		}
		p.wild.into(v, l.Type.DType, n)
	default:
		for i := range v {
			v[i] = float64(n.Intn(i, 7))
		}
	}
	for i, x := range v {
		t.SetAt(i, x)
	}
	return t
}

// leaves are those of a graph that is compiled: the live ones.
func leaves(g *graph.Graph) []graph.Leaf {
	var all []graph.Leaf
	for i, live := range g.Live() {
		if l, ok := g.Nodes()[i].Op.(graph.Leaf); ok && live {
			all = append(all, l)
		}
	}
	return all
}
