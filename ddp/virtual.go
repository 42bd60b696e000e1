package ddp

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Shards says how a program for many ranks runs on fewer.
type Shards struct {
	// Virtual is the number of ranks that the graph was built for; a power of
	// two.
	Virtual int
	// World is the number of ranks that there are; it divides Virtual.
	World int
	// Split names the inputs whose first axis is samples: each virtual rank
	// sees its part. All virtual ranks see the whole of any other input. A variable
	// that it names is a rank's own in the same way: it is as many times as long as
	// the rank plays virtual ranks, and each assigns its part. Names that the graph does
	// not have are an error: see Of.
	Split map[string]bool
	// Key names the input of type graph.KeyType, whose third entry is the
	// position of the first sample. It may be empty.
	Key string
	// Batch is the number of samples of one virtual rank.
	Batch int
}

// Validate says what is wrong with the numbers.
func (s Shards) Validate() error {
	switch {
	case s.Virtual < 1 || bits.OnesCount(uint(s.Virtual)) != 1:
		return fmt.Errorf("want a number of virtual shards that is a power of two, got %d", s.Virtual)
	case s.World < 1 || s.Virtual%s.World != 0:
		return fmt.Errorf("%d virtual shards cannot be shared evenly by %d ranks: want 1, 2, 4, … up to %d ranks", s.Virtual, s.World, s.Virtual)
	case s.Batch < 1:
		return fmt.Errorf("want at least one sample in each of %d virtual shards", s.Virtual)
	}
	return nil
}

// Of is s with those names of Split and Key alone that g has, for one of several graphs
// that are cut alike.
func (s Shards) Of(g *graph.Graph) Shards {
	leaves := leavesOf(g)
	split := map[string]bool{}
	for name := range s.Split {
		if _, ok := leaves[name]; ok && s.Split[name] {
			split[name] = true
		}
	}
	s.Split = split
	if _, ok := leaves[s.Key]; !ok {
		s.Key = ""
	}
	return s
}

// leavesOf are the inputs and variables of g by name, those that nothing reads too.
func leavesOf(g *graph.Graph) map[string]graph.Leaf {
	leaves := map[string]graph.Leaf{}
	for _, n := range g.Nodes() {
		if l, ok := n.Op.(graph.Leaf); ok && l.Kind != graph.Dummy {
			leaves[l.Name] = l
		}
	}
	return leaves
}

// check says which names of s are not those of leaves that can be cut, or name draws.
func (s Shards) check(leaves map[string]graph.Leaf) error {
	for _, name := range slices.Sorted(maps.Keys(s.Split)) {
		l, ok := leaves[name]
		switch {
		case !s.Split[name]:
		case !ok:
			return fmt.Errorf("the graph has no input or variable %q to cut into virtual shards: want names of its leaves in Split (%s)", name, inputs(leaves))
		case name == s.Key:
			return fmt.Errorf("%s is in Split and is Key: it names the draws of all virtual shards and is not cut, so leave it out of Split", l)
		case l.Type.Shape.Rank() == 0:
			return fmt.Errorf("%s is one number, and is not cut into virtual shards: leave it out of Split, or give it an axis of samples", l)
		}
	}
	l, ok := leaves[s.Key]
	switch {
	case s.Key == "":
	case !ok || l.Kind != graph.Input:
		return fmt.Errorf("the graph has no input %q to name draws: want one of type %v as Key (%s), or none", s.Key, graph.KeyType, inputs(leaves))
	case l.Type != graph.KeyType:
		return fmt.Errorf("%s %v cannot name draws: want an input of type %v as Key", l, l.Type, graph.KeyType)
	}
	return nil
}

// inputs says which inputs there are.
func inputs(leaves map[string]graph.Leaf) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(leaves)) {
		if leaves[name].Kind == graph.Input {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) == 0 {
		return "it has no inputs"
	}
	return "its inputs are " + strings.Join(names, ", ")
}

// Virtualise turns g, built for Virtual ranks, into the program of one of World
// ranks, which plays Virtual/World of them: it holds that many copies of g, and
// each AllReduce adds the copies' values before it adds those of the ranks. All
// additions follow one balanced binary tree over the virtual ranks, of bfloat16s in
// float32, so the result has the same bits whatever World is, if the program is compiled
// with exec.Options.Deterministic.
//
// What does not depend on a virtual rank's own samples is the same computation
// in every copy and is there once. Outputs and assigned values must be of that
// kind, but those of variables in Split: it is an error if one is not, for then it was
// not reduced.
func Virtualise(g *graph.Graph, s Shards) (*graph.Graph, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := s.check(leavesOf(g)); err != nil {
		return nil, err
	}
	if s.World == s.Virtual && s.Virtual > 1 { // one copy agrees with itself, so two are asked
		two := s
		two.World /= 2
		if _, err := Virtualise(g, two); err != nil {
			return nil, err
		}
	}
	v := &virtual{Shards: s, from: g, to: &graph.Builder{}, own: map[graph.ID]graph.ID{}}
	v.copies = make([][]graph.ID, s.Virtual/s.World)
	for r := range v.copies {
		v.copies[r] = make([]graph.ID, g.NumValues())
	}
	for i, live := range g.Live() {
		if live {
			v.node(g.Nodes()[i])
		}
	}
	for _, o := range g.Outputs() {
		v.to.Output(o.Name, v.common(o.ID, "output "+o.Name))
	}
	for _, a := range g.Assigns() {
		if whole, own := v.own[a.Var]; own {
			v.to.Assign(whole, v.joined(a.Value))
			continue
		}
		what := fmt.Sprintf("the new value of %s", g.Nodes()[g.NodeOf(a.Var)].Op)
		v.to.Assign(v.common(a.Var, what), v.common(a.Value, what))
	}
	return v.to.Build()
}

// virtual is one transformation.
type virtual struct {
	Shards
	from   *graph.Graph
	to     *graph.Builder
	copies [][]graph.ID          // by copy and by ID in from: the ID in to
	own    map[graph.ID]graph.ID // variables in Split, by ID in from: the whole in to
}

// node puts all copies of a node into the new graph.
func (v *virtual) node(n graph.Node) {
	v.to.Scope(n.Scope, func() {
		switch op := n.Op.(type) {
		case graph.Leaf:
			v.leaf(op, n.Out[0])
		case graph.AllReduce:
			v.allReduce(op, n)
		default:
			if graph.RanksOf(n.Op) != 0 {
				v.to.Fail(fmt.Errorf("%s is of ranks that there are: cut the batch into virtual shards before the optimiser is sharded", n.Op))
			}
			for _, ids := range v.copies {
				v.set(ids, n.Out, v.to.Apply(n.Op, pick(ids, n.In)...))
			}
		}
	})
}

// joined is the value of all copies, one after the other.
func (v *virtual) joined(id graph.ID) graph.ID {
	parts := make([]graph.ID, len(v.copies))
	for r, ids := range v.copies {
		parts[r] = ids[id]
	}
	return v.to.Concat(0, parts...)
}

// leaf gives each copy its part of an input, or of a variable of its own: a slice, if
// of the whole, so that every world has the same ops.
func (v *virtual) leaf(op graph.Leaf, out graph.ID) {
	t := op.Type
	split := v.Split[op.Name]
	if split {
		op.Type.Shape = t.Shape.With(0, t.Shape.At(0)*len(v.copies))
	}
	whole := v.to.Apply(op)
	if v.to.Err() != nil {
		return
	}
	if split && op.Kind == graph.Var {
		v.own[out] = whole[0]
	}
	for r, ids := range v.copies {
		part := whole
		switch {
		case split:
			n := t.Shape.At(0)
			part = v.to.Apply(rows(op.Type.Shape, r*n, (r+1)*n), whole[0])
		case op.Kind == graph.Input && op.Name == v.Key && v.Key != "":
			part = []graph.ID{v.key(whole[0], r)}
		}
		v.set(ids, []graph.ID{out}, part)
	}
}

// rows are elements start … limit−1 along the first axis of s.
func rows(s graph.Shape, start, limit int) graph.Slice {
	o := graph.Slice{Start: s, Limit: s.With(0, limit), Step: s}
	for i := range s.Rank() {
		o.Start, o.Step = o.Start.With(i, 0), o.Step.With(i, 1)
	}
	o.Start = o.Start.With(0, start)
	return o
}

// key is the key of copy r: its first sample is r·Batch later.
func (v *virtual) key(key graph.ID, r int) graph.ID {
	b := v.to
	full := func(x int) graph.ID { return b.Full(graph.KeyType, float64(x)) }
	third := b.Equal(b.Iota(graph.KeyType, 0), full(2))
	return b.Add(key, b.Mul(third, full(r*v.Batch)))
}

// allReduce adds the copies, then the ranks.
func (v *virtual) allReduce(op graph.AllReduce, n graph.Node) {
	sums := make([]graph.ID, len(n.In))
	for i, in := range n.In {
		parts := make([]graph.ID, len(v.copies))
		for r, ids := range v.copies {
			parts[r] = v.to.Cast(ids[in], wide(v.from.Type(in).DType))
		}
		sums[i] = v.sum(parts)
	}
	sums = v.to.AllReduce(collective.Sum, op.Label, sums...)
	for i, id := range sums {
		if op.Op == collective.Mean {
			id = v.to.Scale(id, 1/float64(v.Virtual)) // exact: a power of two
		}
		sums[i] = v.to.Cast(id, v.from.Type(n.In[i]).DType)
	}
	for _, ids := range v.copies {
		v.set(ids, n.Out, sums)
	}
}

// wide is the type in which numbers of type t are added up: bfloat16s would be rounded
// after each addition.
func wide(t graph.DType) graph.DType {
	if t == graph.BF16 {
		return graph.F32
	}
	return t
}

// sum adds by halves, as the communicator does.
func (v *virtual) sum(x []graph.ID) graph.ID {
	if len(x) == 1 {
		return x[0]
	}
	return v.to.Add(v.sum(x[:len(x)/2]), v.sum(x[len(x)/2:]))
}

// common is the value that all copies share.
func (v *virtual) common(id graph.ID, what string) graph.ID {
	for _, ids := range v.copies {
		if ids[id] != v.copies[0][id] {
			v.to.Fail(fmt.Errorf("%s depends on the samples of one virtual shard: it must be reduced over ranks first", what))
			return 0
		}
	}
	return v.copies[0][id]
}

func (v *virtual) set(ids, from, to []graph.ID) {
	if v.to.Err() != nil {
		return
	}
	for i, id := range from {
		ids[id] = to[i]
	}
}

func pick(ids, which []graph.ID) []graph.ID {
	out := make([]graph.ID, len(which))
	for i, id := range which {
		out[i] = ids[id]
	}
	return out
}
