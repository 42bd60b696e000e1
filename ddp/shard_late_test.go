package ddp_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// mayBeLate names the variables of shardModel that may be gathered late.
func mayBeLate() map[string]bool {
	all := map[string]bool{}
	for i := range shardShapes {
		all[fmt.Sprint("w", i)] = true
	}
	return all
}

// What the step that makes them does not read of new weights is gathered in the next one:
// every number has the bits that it has without.
func TestGatherLate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps func(s *shardModel)
		late  string // the weights that are gathered late
	}{
		{"adam", func(s *shardModel) { s.adam(s.grads()) }, "w0 w1 w2 w3"},
		{"two steps", func(s *shardModel) { s.adam(s.grads()); s.adam(s.grads()) }, "w0 w1 w2 w3"},
		{"one is shown", func(s *shardModel) {
			s.adam(s.grads())
			s.b.Output("w", s.w[1])
		}, "w0 w2 w3"},
		{"one is averaged", func(s *shardModel) {
			s.adam(s.grads())
			avg := s.b.Var("avg", graph.T(graph.F32, 3, 5))
			s.b.Assign(avg, s.b.Add(s.b.Scale(avg, 0.9), s.b.Scale(s.w[0], 0.1)))
		}, "w1 w2 w3"},
		{"one has a copy that must be whole", func(s *shardModel) {
			s.adam(s.grads())
			s.b.Assign(s.b.Var("twin", graph.T(graph.F32, 5)), s.w[1])
		}, "w0 w2 w3"},
		{"an old one is kept", func(s *shardModel) {
			s.adam(s.grads())
			s.b.Assign(s.b.Var("wo", graph.T(graph.F32, 3, 5)), s.leaves[0])
		}, "w0 w1 w2 w3"},
		{"one is read by the loss alone", func(s *shardModel) {
			grads := s.grads()
			grads[3] = s.b.Zeros(s.b.Type(s.w[3]))
			s.adam(grads)
		}, "w0 w1 w2 w3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, world := range []int{2, 3, 4} {
				s := newShardModel(world)
				s.early = s.loss()
				tt.steps(s)
				g := s.build(t)
				parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: world, State: moments(), Late: mayBeLate()})
				if err != nil {
					t.Fatal(err)
				}
				var late []string
				for _, s := range list.Late {
					late = append(late, s.Name)
				}
				slices.Sort(late)
				if got := strings.Join(late, " "); got != tt.late {
					t.Errorf("%d ranks: late are %s, want %s", world, got, tt.late)
				}
				if err := sameValues(steps(t, parts, world, list, ownRows), steps(t, g, world, ddp.Parts{}, ownRows)); err != nil {
					t.Errorf("%d ranks: %v", world, err)
				}
			}
		})
	}
}

// What is not among those that may is gathered at once, and a weight that the step reads in
// parts alone not at all.
func TestGatherLateOnlyWhatMay(t *testing.T) {
	s := newShardModel(2)
	s.early = s.loss()
	idle := s.b.Var("idle", graph.T(graph.F32, 6))
	s.moment[0], s.leaves = append(s.moment[0], s.b.Var("m9", s.b.Type(idle))), append(s.leaves, idle)
	s.moment[1] = append(s.moment[1], s.b.Var("v9", s.b.Type(idle)))
	s.m, s.v, s.w = append(s.m, s.moment[0][4]), append(s.v, s.moment[1][4]), append(s.w, idle)
	s.adam(append(s.grads()[:4:4], s.b.Zeros(s.b.Type(idle))))
	g := s.build(t)
	state := moments()
	state["m9"], state["v9"] = true, true
	for _, tt := range []struct {
		may     map[string]bool
		gathers int
	}{{nil, 2}, {map[string]bool{"idle": true}, 1}, {map[string]bool{"w0": true}, 3}, {mayBeLate(), 2}} {
		parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: state, Late: tt.may})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Late) != len(tt.may) || count(parts, "allgather") != tt.gathers {
			t.Errorf("may %v: %d are late, and the step gathers %d times, want %d:\n", tt.may, len(list.Late), count(parts, "allgather"), tt.gathers)
		}
	}
}

// A weight that the step only shows, or keeps a copy of as it was, is gathered for that.
func TestGatherLateWhatIsShown(t *testing.T) {
	for name, reads := range map[string]func(b *graph.Builder, w graph.ID){
		"shown": func(b *graph.Builder, w graph.ID) { b.Output("w", w) },
		"kept":  func(b *graph.Builder, w graph.ID) { b.Assign(b.Var("wo", b.Type(w)), w) },
	} {
		b := &graph.Builder{}
		x, rate := b.Input("x", graph.T(graph.F32, 4, 3)), b.Input("rate", graph.T(graph.F32))
		w, m := b.Var("w0", graph.T(graph.F32, 3)), b.Var("m0", graph.T(graph.F32, 3))
		next := b.Add(b.Scale(m, 0.9), ddp.Sync(b, 2, "net", []graph.ID{b.Mul(b.Sum(x, 0), rate)})[0])
		b.Assign(m, next)
		b.Assign(w, b.Sub(w, next))
		reads(b, w)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: moments(), Late: mayBeLate()})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(list.Late) != 1 {
			t.Errorf("%s: %d weights are late, want the one", name, len(list.Late))
		}
		if err := sameValues(steps(t, parts, 2, list, ownRows), steps(t, g, 2, ddp.Parts{}, ownRows)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// State is kept in parts whether or not it is among what may be gathered late.
func TestGatherLateNoState(t *testing.T) {
	s := newShardModel(2)
	s.early = s.loss()
	s.adam(s.grads())
	g, may := s.build(t), mayBeLate()
	for name := range moments() {
		may[name] = true
	}
	parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: moments(), Late: may})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.State) != 8 || len(list.Late) != 4 {
		t.Errorf("%d of 8 moments are state, and %d are late, want the 4 weights", len(list.State), len(list.Late))
	}
	if err := sameValues(steps(t, parts, 2, list, ownRows), steps(t, g, 2, ddp.Parts{}, ownRows)); err != nil {
		t.Error(err)
	}
}

// A step reads its weights first in this order, whatever that of the variables is.
func TestGatherInOrderOfUse(t *testing.T) {
	const n = 1 << 16 // each travels alone
	b := &graph.Builder{}
	typ := graph.T(graph.F32, n)
	state, may := map[string]bool{}, map[string]bool{}
	var ws []graph.ID
	for _, name := range []string{"a", "b", "c"} {
		ws = append(ws, b.Var(name, typ))
		may[name], state["m"+name] = true, true
	}
	loss := b.Zeros(graph.T(graph.F32))
	for _, k := range []int{2, 0, 1} {
		loss = b.Add(loss, b.Sum(b.Sin(ws[k])))
	}
	for i, g := range ddp.Sync(b, 2, "net", b.Grad(loss, ws...)) {
		m := b.Var("m"+string(rune('a'+i)), typ)
		next := b.Add(m, g)
		b.Assign(m, next)
		b.Assign(ws[i], b.Sub(ws[i], next))
	}
	b.Output("loss", b.AllReduce(collective.Mean, "loss", loss)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	parts, _, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: state, Late: may})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i, n := range parts.Nodes() {
		if _, ok := n.Op.(graph.AllGather); ok && parts.Live()[i] {
			order = append(order, variableOf(parts, n.In[0]))
		}
		if op, ok := n.Op.(graph.Unary); ok && op.Fn == graph.Sin && len(order) < 3 {
			t.Errorf("a weight is read when %v are on their way, want all three", order)
		}
	}
	if got := fmt.Sprint(order); got != "[c.part a.part b.part]" {
		t.Errorf("gathers are in the order %s, want that of use: c, a, b", got)
	}
}

// variableOf is the name of the variable that a value follows from.
func variableOf(g *graph.Graph, id graph.ID) string {
	n := g.Nodes()[g.NodeOf(id)]
	if leaf, ok := n.Op.(graph.Leaf); ok {
		return leaf.Name
	}
	return variableOf(g, n.In[0])
}

// A whole that is set anew is cut, and made of its parts again, in all types and sizes.
func TestWholeOfParts(t *testing.T) {
	const world = 3
	parts := ddp.Parts{}
	for i, w := range []graph.Type{graph.T(graph.F32, 300, 300), graph.T(graph.F32, 5), graph.T(graph.F64, 2, 2), graph.T(graph.F32), graph.T(graph.F32, 7)} {
		n := (w.Shape.Len() + world - 1) / world
		parts.Late = append(parts.Late, ddp.Sharded{Name: fmt.Sprint("w", i), Whole: w, Part: graph.T(w.DType, n)})
	}
	g, err := parts.Whole(world)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(g, "allgather"); n != 3 {
		t.Errorf("%d gathers, want one of the large one, one of the other float32 and one of float64", n)
	}
	comms := local(t, world)
	err = ddptest.Each(world, func(rank int, _ collective.Comm) error {
		vars, want := ddptest.NewVars(), map[string]*exec.Tensor{}
		for i, s := range parts.Late {
			v := ddptest.Tensor(s.Whole, ddptest.Noise(uint32(i), s.Whole.Shape.Len()))
			want[s.Name] = v
			if err := vars.Set(s.Name, v); err != nil {
				return err
			}
		}
		if err := parts.Cut(vars, rank); err != nil {
			return err
		}
		for _, s := range parts.Late { // what the last step read
			if err := vars.Set(s.Name, exec.NewTensor(s.Whole)); err != nil {
				return err
			}
		}
		if _, err := ddptest.Run(g, vars, comms[rank], nil); err != nil {
			return err
		}
		for name, w := range want {
			got, err := vars.Get(name)
			if err != nil {
				return err
			}
			if !bytes.Equal(got.Bytes(), w.Bytes()) {
				return fmt.Errorf("rank %d: %s is not what was cut", rank, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if g, err := (ddp.Parts{}).Whole(world); g != nil || err != nil {
		t.Errorf("nothing is late, and there is a graph to gather it, or %v", err)
	}
}

// A part's name is its own.
func TestPartNamesAreFree(t *testing.T) {
	s := newShardModel(2)
	s.early = s.loss()
	s.adam(s.grads())
	other := s.b.Var(ddp.PartName("w1"), graph.T(graph.F32))
	s.b.Assign(other, s.b.Shift(other, 1))
	_, _, err := ddp.ShardOptimizer(s.build(t), ddp.Sharding{World: 2, State: moments(), Late: mayBeLate()})
	if err == nil || !strings.Contains(err.Error(), "the step has a variable w1.part") {
		t.Errorf("got %v, want that the name w1.part is taken", err)
	}
}
