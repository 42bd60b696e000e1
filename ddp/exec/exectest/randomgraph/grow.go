package randomgraph

import (
	"fmt"
	"slices"

	"ebtrain/ddp"
	"ebtrain/ddp/graph"
)

// grower grows one graph.
type grower struct {
	*Choices
	b       *graph.Builder
	pool    []graph.ID
	exact   map[graph.ID]bool // no rounding has touched it
	jumps   bool              // a function with a kink was applied where rounding counts
	kinks   bool              // functions with kinks may occur
	pixels  bool              // most values are images, and most ops are of images
	float   graph.DType       // of most values
	extents []int             // of most axes
	shapes  []graph.Shape     // of leaves so far
	most    int               // elements of a value
	leaf    int               // number of leaves
	ranks   int
	batch   int // of samples, in a data-parallel step; else 0
	split   map[string]bool
}

// Limits are what a program may have.
type Limits struct {
	// Recurrence is the most steps that a recurrence is unrolled.
	Recurrence int
	// Nodes is about the most nodes.
	Nodes int
}

// DefaultLimits keep a program's check below some tenths of a second.
func DefaultLimits() Limits { return Limits{Recurrence: 40, Nodes: 400} }

// Grow makes a program of choices. An error says that the builder refused what
// should be possible.
func Grow(c *Choices, l Limits) (*Program, error) {
	g := &grower{Choices: c, b: &graph.Builder{}, exact: map[graph.ID]bool{}, split: map[string]bool{}, ranks: 1}
	g.float = pick(c, graph.F32, graph.F32, graph.F32, graph.F32, graph.F32, graph.F64, graph.BF16)
	g.kinks = c.n(2) == 1
	g.pixels = c.one(4)
	for range 2 + c.n(3) {
		g.extents = append(g.extents, pick(c, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33))
	}
	g.most = pick(c, 300, 600, 600, 2000)
	if c.one(12) {
		g.most = 20000
		g.extents = append(g.extents, pick(c, 64, 96, 130, 257, 1000))
	}
	switch form := c.n(8); {
	case form == 0:
		g.batch = 1 + c.n(3)
		return g.parallel()
	case form < 3:
		g.ranks = pick(c, 2, 2, 3)
	case form == 3 && c.one(2):
		return g.sharded()
	}
	g.leaves(2 + c.n(5))
	if c.one(3) {
		g.recurrence(l)
	}
	for range 1 + c.n(1+c.n(60)) {
		if g.b.NumNodes() > l.Nodes || g.b.Err() != nil {
			break
		}
		g.step()
	}
	var out []graph.ID
	for range 1 + c.n(4) {
		out = append(out, g.late())
	}
	if c.n(3) > 0 && (!g.jumps || c.n(2) == 0) {
		out = append(out, g.gradients(l)...)
	}
	for i, id := range out {
		g.b.Output(fmt.Sprintf("y%d", i), id)
	}
	g.assign()
	built, err := g.b.Build()
	if err != nil {
		return nil, err
	}
	return &Program{Graph: built, Ranks: g.ranks, Steps: 1 + c.n(3), choice: c.n(3), wild: c.wild()}, nil
}

// parallel grows a data-parallel step: losses of samples, means over ranks,
// gradients that are reduced, and assignments.
func (g *grower) parallel() (*Program, error) {
	g.most = min(g.most, 600) // of each of eight shards
	g.float, g.jumps = pick(g.Choices, graph.F32, graph.F32, graph.F64), true
	g.leaves(3 + g.n(4))
	for range 3 + g.n(30) {
		g.step()
	}
	var local []graph.ID
	for range 2 + g.n(3) {
		if y := g.late(); g.b.Type(y).DType == g.float && g.b.Shape(y).Len() > 0 {
			local = append(local, g.b.Mean(g.b.Tanh(y)))
		}
	}
	if len(local) == 0 {
		local = append(local, g.b.Full(graph.T(g.float), 1))
	}
	loss := local[0]
	for _, y := range local[1:] {
		loss = g.b.Add(loss, y)
	}
	var weights []graph.ID
	for _, id := range g.pool {
		if leaf, ok := g.b.Node(id).Op.(graph.Leaf); ok && !g.split[leaf.Name] && g.b.Type(id).DType == g.float {
			weights = append(weights, id)
		}
	}
	state := map[string]bool{}
	if len(weights) > 0 && g.n(2) == 0 {
		g.optimise(loss, weights, state)
		weights = nil
	}
	all := []graph.ID{loss}
	if len(weights) > 0 {
		all = append(all, g.b.Grad(loss, weights...)...)
	}
	all = g.b.AllReduce(pick(g.Choices, meanOp, sumOp), "gradients", all...)
	for i, id := range all {
		g.b.Output(fmt.Sprintf("loss%d", i), id)
	}
	for i, w := range weights {
		if leaf := g.b.Node(w).Op.(graph.Leaf); leaf.Kind == graph.Var {
			g.b.Assign(w, g.b.Sub(w, g.b.Scale(all[i+1], 0.1)))
		}
	}
	g.assignOwn()
	one, err := g.b.Build()
	if err != nil {
		return nil, err
	}
	s := ddp.Shards{Virtual: pick(g.Choices, 4, 4, 8), World: 1, Split: g.split, Key: keyName, Batch: g.batch}.Of(one)
	whole, err := ddp.Virtualise(one, s)
	if err != nil {
		return nil, err
	}
	return &Program{Graph: whole, Ranks: 1, Steps: 2, Shards: &s, local: one, State: state, choice: g.n(3), wild: g.wild()}, nil
}

// shape is a new one, or that of another leaf with some axes of extent 1.
func (g *grower) shape() graph.Shape {
	if len(g.shapes) > 0 && g.n(3) > 0 {
		s := pick(g.Choices, g.shapes...)
		for i := range s.Rank() {
			if g.one(5) {
				s = s.With(i, 1)
			}
		}
		return s
	}
	if g.pixels && g.n(4) > 0 || g.one(3) { // an image
		s := graph.D(1+g.n(3), pick(g.Choices, 1, 2, 3, 4, 8, 17), 1+g.n(9), 1+g.n(9))
		for s.Len() > g.most {
			s = s.With(g.n(4), 1)
		}
		if g.one(12) && g.batch == 0 { // none, or of nothing
			s = s.With(g.n(2), 0)
		}
		return s
	}
	s := graph.D()
	for range g.n(6) {
		e := pick(g.Choices, g.extents...)
		if g.one(40) && g.batch == 0 { // there are no empty shards
			e = 0
		}
		if t := graph.D(append(s.Slice(), e)...); t.Len() <= g.most && !g.wide(t) {
			s = t
		}
	}
	return s
}

// leaves makes inputs and variables.
func (g *grower) leaves(n int) {
	for range n {
		s := g.shape()
		t := graph.Type{DType: g.float, Shape: s}
		switch g.n(12) {
		case 0:
			t.DType = pick(g.Choices, graph.I32, graph.I64, graph.U8)
		case 1:
			t.DType = pick(g.Choices, graph.F32, graph.F64, graph.BF16)
		}
		if g.batch > 0 {
			t.DType = g.float
		}
		kind := pick(g.Choices, graph.Input, graph.Input, graph.Var)
		name := fmt.Sprintf("%s%d", pick(g.Choices, "x", "w"), g.leaf)
		if g.batch > 0 && (kind == graph.Input || g.one(4)) { // samples, and what is kept for each
			lead := graph.D(append([]int{g.batch}, s.Slice()[:min(s.Rank(), graph.MaxRank-1)]...)...)
			t.Shape = lead
			g.split[name] = true
		}
		g.leaf++
		g.shapes = append(g.shapes, t.Shape)
		var id graph.ID
		if kind == graph.Var {
			id = g.b.Var(name, t)
		} else {
			id = g.b.Input(name, t)
		}
		g.put(id, kind == graph.Input || g.batch == 0 && g.n(2) == 0)
		if kind == graph.Var && g.batch == 0 && g.one(2) { // for a swap
			g.put(g.b.Var(name+"'", t), g.exact[id])
		}
	}
	if g.one(4) {
		g.put(g.b.Full(graph.Type{DType: g.float, Shape: pick(g.Choices, g.shapes...)}, pick(g.Choices, 0, 0.5, 1, -1)), true)
	}
}

// wide says whether a value of nothing would be too big without its empty axes: what is
// made of it may be without them.
func (g *grower) wide(s graph.Shape) bool {
	n := 1
	for _, d := range s.Slice() {
		n *= max(d, 1)
	}
	return s.Len() == 0 && n > g.most
}

// put adds a value to the pool, unless there is none, it is known, or it is of nothing and
// too wide.
func (g *grower) put(id graph.ID, exact bool) {
	if _, known := g.exact[id]; id == 0 || known || len(g.pool) > 0 && g.wide(g.b.Shape(id)) {
		return
	}
	g.exact[id] = exact
	g.pool = append(g.pool, id)
}

// any is a value of the pool; late prefers late ones.
func (g *grower) any() graph.ID  { return pick(g.Choices, g.pool...) }
func (g *grower) late() graph.ID { return g.pool[max(g.n(len(g.pool)), g.n(len(g.pool)))] }

// real is a late value of the graph's floating-point type; some other becomes one
// by a cast if there is none.
func (g *grower) real() graph.ID {
	for range 8 {
		if id := g.late(); g.b.Type(id).DType == g.float {
			return id
		}
	}
	id := g.late()
	y := g.b.Cast(id, g.float)
	g.put(y, g.exact[id] && !g.b.Type(id).DType.IsFloat())
	return y
}

// apply applies op where it fits and gives a value that is not too big.
func (g *grower) apply(op graph.Op, in ...graph.ID) graph.ID {
	types := make([]graph.Type, len(in))
	for i, id := range in {
		if id == 0 {
			return 0
		}
		types[i] = g.b.Type(id)
	}
	out, err := op.Infer(types)
	if err != nil {
		return 0
	}
	for _, t := range out {
		if t.Shape.Len() > g.most {
			return 0
		}
	}
	if ids := g.b.Apply(op, in...); len(ids) > 0 {
		return ids[0]
	}
	return 0 // the builder has an error, which ends the growth
}

// assignOwn gives variables of samples new values.
func (g *grower) assignOwn() {
	for _, id := range g.pool {
		if leaf, ok := g.b.Node(id).Op.(graph.Leaf); ok && leaf.Kind == graph.Var && g.split[leaf.Name] {
			g.b.Assign(id, g.fitting(id))
		}
	}
}

// fitting is a late value of the type of variable id, one that no rounding has touched if
// that holds of the variable: it does so in the next step, too.
func (g *grower) fitting(id graph.ID) graph.ID {
	var fit []graph.ID
	for _, x := range g.pool {
		if g.b.Type(x) == g.b.Type(id) && (g.exact[x] || !g.exact[id]) {
			fit = append(fit, x)
		}
	}
	return fit[max(g.n(len(fit)), g.n(len(fit)))]
}

// assign gives variables new values of their type.
func (g *grower) assign() {
	for _, id := range g.pool {
		leaf, ok := g.b.Node(id).Op.(graph.Leaf)
		if !ok || leaf.Kind != graph.Var || g.n(3) == 0 {
			continue
		}
		g.b.Assign(id, g.fitting(id))
	}
}

// above are the values that y depends on, itself among them.
func (g *grower) above(y graph.ID) map[graph.ID]bool {
	all, next := map[graph.ID]bool{y: true}, []graph.ID{y}
	for len(next) > 0 {
		n := g.b.Node(next[0])
		next = next[1:]
		for _, x := range n.In {
			if !all[x] {
				all[x] = true
				next = append(next, x)
			}
		}
	}
	return all
}

// gradients are those of a scalar up to the third order.
func (g *grower) gradients(l Limits) []graph.ID {
	y := g.real()
	if g.b.Shape(y).Len() == 0 {
		return nil
	}
	var wrt, all []graph.ID
	for x := range g.above(y) {
		if g.b.Type(x).DType.IsFloat() && g.b.Shape(x).Len() > 0 {
			all = append(all, x)
		}
	}
	slices.Sort(all)
	for range 1 + g.n(3) {
		wrt = append(wrt, all[min(g.n(len(all)), g.n(len(all)))]) // leaves, often
	}
	var out []graph.ID
	scalar := g.b.Mean(pick(g.Choices, g.b.Sin, g.b.Square, g.b.Tanh)(y))
	for range pick(g.Choices, 1, 2, 2, 3, 3) {
		d := g.b.Grad(scalar, wrt...)
		if g.one(8) {
			d = g.along(scalar, wrt)
		}
		out = append(out, d...)
		if g.b.NumNodes() > l.Nodes {
			break
		}
		scalar = g.b.Mean(g.b.Square(pick(g.Choices, d...)))
	}
	for _, id := range out {
		g.put(id, false)
	}
	return out
}

// along are derivatives along directions: products of the Hessian, or those of a step
// forward.
func (g *grower) along(y graph.ID, wrt []graph.ID) []graph.ID {
	directions := make([]graph.ID, len(wrt))
	for i, x := range wrt {
		directions[i] = g.b.Cos(x)
	}
	if g.n(2) == 0 {
		return g.b.HVP(y, wrt, directions)
	}
	return []graph.ID{g.b.Pushforward(g.b.Grad(y, wrt[0])[0], wrt[0], directions[0])}
}
