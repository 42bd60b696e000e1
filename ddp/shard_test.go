package ddp_test

import (
	"errors"
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

// shardModel is a small model that is stepped by an optimiser with moments: weights of
// several sizes, among them a single number and one of no round size.
type shardModel struct {
	b      *graph.Builder
	world  int
	x      graph.ID
	w      []graph.ID // newest values
	leaves []graph.ID
	m, v   []graph.ID // newest values
	moment [2][]graph.ID
	early  graph.ID // the loss that is shown; 0 is that of the newest weights
}

var shardShapes = [][]int{{3, 5}, {5}, {}, {4, 3, 2}}

func newShardModel(world int) *shardModel {
	s := &shardModel{b: &graph.Builder{}, world: world}
	s.x = s.b.Input("x", graph.T(graph.F32, 4, 3))
	for i, dims := range shardShapes {
		t := graph.T(graph.F32, dims...)
		s.leaves = append(s.leaves, s.b.Var(fmt.Sprint("w", i), t))
		s.moment[0] = append(s.moment[0], s.b.Var(fmt.Sprint("m", i), t))
		s.moment[1] = append(s.moment[1], s.b.Var(fmt.Sprint("v", i), t))
	}
	s.w, s.m, s.v = append(s.w, s.leaves...), append(s.m, s.moment[0]...), append(s.v, s.moment[1]...)
	return s
}

// loss reads the newest weights.
func (s *shardModel) loss() graph.ID {
	b := s.b
	h := b.Tanh(b.Add(b.MatMul(s.x, s.w[0], false, false), b.Mul(s.w[1], s.w[2])))
	return b.Add(b.Mean(b.Square(h)), b.Mean(b.Square(b.Shift(b.Sin(s.w[3]), 0.3))))
}

func (s *shardModel) grads() []graph.ID {
	return ddp.Sync(s.b, s.world, "net", s.b.Grad(s.loss(), s.w...))
}

// adam is a step of Adam with weight decay.
func (s *shardModel) adam(grads []graph.ID) {
	b := s.b
	rate := b.Input("rate", graph.T(graph.F32))
	for i, g := range grads {
		g = b.Add(g, b.Scale(s.w[i], 0.01))
		s.m[i] = b.Add(b.Scale(s.m[i], 0.9), b.Scale(g, 0.1))
		s.v[i] = b.Add(b.Scale(s.v[i], 0.99), b.Scale(b.Square(g), 0.01))
		s.w[i] = b.Sub(s.w[i], b.Div(b.Mul(s.m[i], rate), b.Shift(b.Sqrt(s.v[i]), 1e-3)))
	}
}

func (s *shardModel) build(t *testing.T) *graph.Graph {
	t.Helper()
	for i, w := range s.leaves {
		for _, a := range [][2]graph.ID{{w, s.w[i]}, {s.moment[0][i], s.m[i]}, {s.moment[1][i], s.v[i]}} {
			if a[0] != a[1] {
				s.b.Assign(a[0], a[1])
			}
		}
	}
	if s.early == 0 {
		s.early = s.loss()
	}
	s.b.Output("loss", s.b.AllReduce(collective.Mean, "loss", s.early)[0])
	g, err := s.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func moments() map[string]bool {
	all := map[string]bool{}
	for i := range shardShapes {
		all[fmt.Sprint("m", i)], all[fmt.Sprint("v", i)] = true, true
	}
	return all
}

// steps runs four steps on connected ranks, and returns of rank 0 the losses and all
// variables, those in sharded gathered, after comparing the ranks.
func steps(t *testing.T, g *graph.Graph, world int, sharded ddp.Parts, xs func(step, rank int) []float64) (seen []ddptest.Values) {
	t.Helper()
	comms, all := local(t, world), make([][]ddptest.Values, world)
	parts := map[string]ddp.Sharded{}
	for _, s := range sharded.State {
		parts[s.Name] = s
	}
	whole, err := sharded.Whole(world)
	if err != nil {
		t.Fatal(err)
	}
	err = ddptest.Each(world, func(rank int, _ collective.Comm) error {
		vars := ddptest.NewVars()
		if err := errors.Join(setVars(vars, g), sharded.Cut(vars, rank)); err != nil {
			return err
		}
		for step := range 4 {
			out, err := ddptest.Run(g, vars, comms[rank], ddptest.Values{"x": xs(step, rank), "rate": {0.1}})
			if err != nil {
				return err
			}
			if whole != nil && step%2 == 1 { // between the others nobody reads them
				if _, err := ddptest.Run(whole, vars, comms[rank], nil); err != nil {
					return err
				}
			}
			for _, name := range vars.Names() {
				if isPart(sharded, name, step) {
					continue
				}
				v, err := vars.Get(name)
				if err != nil {
					return err
				}
				if p, ok := parts[name]; ok {
					if v, err = p.Gather(t.Context(), comms[rank], v); err != nil {
						return err
					}
				}
				out["var "+name] = ddptest.Numbers(v)
			}
			all[rank] = append(all[rank], out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r := range all {
		if err := sameValues(all[r], all[0]); err != nil {
			t.Fatalf("ranks 0 and %d: %v", r, err)
		}
	}
	return all[0]
}

// isPart says whether a variable is a part of a weight, or a weight that is not as new.
func isPart(p ddp.Parts, name string, step int) bool {
	return slices.ContainsFunc(p.Late, func(s ddp.Sharded) bool { return ddp.PartName(s.Name) == name || s.Name == name && step%2 == 0 })
}

// ownRows are other samples on each rank and in each step.
func ownRows(step, rank int) []float64 { return ddptest.Noise(uint32(10*step+rank), 12) }

// setVars sets the variables of g to noise, moments to nothing.
func setVars(vars exec.Vars, g *graph.Graph) error {
	for _, n := range g.Nodes() {
		leaf, ok := n.Op.(graph.Leaf)
		if !ok || leaf.Kind != graph.Var {
			continue
		}
		v := exec.NewTensor(leaf.Type)
		if leaf.Name[0] == 'w' {
			v = ddptest.Tensor(leaf.Type, ddptest.Noise(uint32(leaf.Name[1]), leaf.Type.Shape.Len()))
		}
		if err := vars.Set(leaf.Name, v); err != nil {
			return err
		}
	}
	return nil
}

func sameValues(got, want []ddptest.Values) error {
	for step := range want {
		for name, w := range want[step] {
			g, ok := got[step][name]
			if !ok && step%2 == 0 && strings.HasPrefix(name, "var w") { // not gathered yet
				continue
			}
			if fmt.Sprint(g) != fmt.Sprint(w) {
				return fmt.Errorf("step %d: %s is %v, want %v", step, name, g, w)
			}
		}
	}
	return nil
}

// count counts the live ops of g whose text begins with prefix.
func count(g *graph.Graph, prefix string) (n int) {
	for i, live := range g.Live() {
		if live && strings.HasPrefix(g.Nodes()[i].Op.String(), prefix) {
			n++
		}
	}
	return n
}

// Any number of ranks computes with parts what it computes with all, bit for bit.
func TestShardOptimizer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		steps   func(s *shardModel)
		sharded int // how many moments
		reduces int // how many gradients and numbers are reduced to all, as collectives
		scatter int
	}{
		{"adam", func(s *shardModel) { s.adam(s.grads()) }, 8, 1, 1},
		{"two steps", func(s *shardModel) { s.adam(s.grads()); s.adam(s.grads()) }, 8, 1, 2},
		{"a clipped norm", func(s *shardModel) {
			b, grads := s.b, s.grads()
			norm := b.Zeros(graph.T(graph.F32))
			for _, g := range grads {
				norm = b.Add(norm, b.Sum(b.Square(g)))
			}
			factor := b.Div(b.Full(graph.T(graph.F32), 0.5), b.Shift(b.Sqrt(norm), 0.5))
			for i, g := range grads {
				grads[i] = b.Mul(g, factor)
			}
			s.adam(grads)
		}, 8, 2, 0},
		{"a rate for each column", func(s *shardModel) {
			grads := s.grads()
			grads[0] = s.b.Mul(grads[0], s.b.Exp(s.b.Var("w8", graph.T(graph.F32, 5))))
			s.adam(grads)
		}, 8, 1, 1},
		{"an average of the weights", func(s *shardModel) {
			s.adam(s.grads())
			avg := s.b.Var("avg", graph.T(graph.F32, 3, 5))
			s.b.Assign(avg, s.b.Add(s.b.Scale(avg, 0.9), s.b.Scale(s.w[0], 0.1)))
		}, 8, 1, 1},
		{"a moment is reported", func(s *shardModel) {
			s.adam(s.grads())
			s.b.Output("m", s.b.Sum(s.moment[0][3]))
		}, 7, 2, 1},
		{"an unrolled step, differentiated", func(s *shardModel) {
			outer := s.b.Var("w9", graph.T(graph.F32, 3, 5))
			s.w[0] = s.b.Add(s.w[0], outer)
			s.adam(s.grads())
			hyper := ddp.Sync(s.b, s.world, "outer", s.b.Grad(s.loss(), outer))
			s.b.Assign(outer, s.b.Sub(outer, hyper[0]))
		}, 0, 4, 0},
		{"descent", func(s *shardModel) {
			for i, g := range s.grads() {
				s.w[i] = s.b.Sub(s.w[i], g)
			}
		}, 0, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, world := range []int{2, 3, 4} {
				s := newShardModel(world)
				tt.steps(s)
				g := s.build(t)
				parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: world, State: moments()})
				if err != nil {
					t.Fatal(err)
				}
				if err := sameValues(steps(t, parts, world, list, ownRows), steps(t, g, world, ddp.Parts{}, ownRows)); err != nil {
					t.Errorf("%d ranks: %v", world, err)
				}
				if tt.sharded == 0 && parts != g {
					t.Errorf("%d ranks: %d moments are sharded, want none, and the graph as it is", world, len(list.State))
				}
				if got := [3]int{len(list.State), count(parts, "allreduce"), count(parts, "reducescatter")}; got != [3]int{tt.sharded, tt.reduces, tt.scatter} {
					t.Errorf("%d ranks: %v moments, all-reduces and reduce-scatters, want %v", world, got, [3]int{tt.sharded, tt.reduces, tt.scatter})
				}
			}
		})
	}
}

// All ranks run one program, and one rank runs the program it is given.
func TestShardOptimizerOfOne(t *testing.T) {
	s := newShardModel(1)
	s.adam(s.grads())
	g := s.build(t)
	got, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 1, State: moments()})
	if got != g || len(list.State) != 0 || err != nil {
		t.Errorf("one rank gets another graph, %v sharded, %v", list, err)
	}
}

// Virtual shards first, then parts: the bits of one rank.
func TestShardedVirtual(t *testing.T) {
	s := newShardModel(4)
	s.adam(s.grads())
	g := s.build(t)
	var want []ddptest.Values
	for _, world := range []int{1, 2, 4} {
		cut, err := ddp.Virtualise(g, ddp.Shards{Virtual: 4, World: world, Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		parts, list, err := ddp.ShardOptimizer(cut, ddp.Sharding{World: world, State: moments(), Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		if world > 1 && (len(list.State) != 8 || count(parts, "reducescatter") != 1) {
			t.Errorf("%d ranks: %d moments are sharded, %d reduce-scatters", world, len(list.State), count(parts, "reducescatter"))
		}
		got := steps(t, parts, world, list, func(step, _ int) []float64 { return ownRows(step, 0) })
		if want == nil {
			want = got
		}
		if err := sameValues(got, want); err != nil {
			t.Errorf("%d ranks: %v", world, err)
		}
		if _, err := ddp.Virtualise(parts, ddp.Shards{Virtual: 4, World: world, Batch: 1}); world > 1 && err == nil {
			t.Error("a sharded graph is cut into virtual shards")
		}
	}
}

// Small weights of two types, whose gradients travelled together, are gathered in two
// vectors.
func TestShardTwoTypes(t *testing.T) {
	b := &graph.Builder{}
	x, rate := b.Input("x", graph.T(graph.F32, 4, 3)), b.Input("rate", graph.T(graph.F32))
	w := []graph.ID{b.Var("w0", graph.T(graph.F32, 3)), b.Var("w1", graph.T(graph.F64, 5))}
	narrow := b.Cast(w[1], graph.F32)
	loss := b.Add(b.Mean(b.Square(b.Mul(x, w[0]))), b.Mul(b.Mean(x), b.Mean(b.Sin(narrow))))
	for i, g := range ddp.Sync(b, 2, "net", b.Grad(loss, w[0], narrow)) {
		m := b.Var(fmt.Sprint("m", i), b.Type(w[i]))
		next := b.Add(b.Scale(m, 0.9), b.Cast(b.Mul(g, rate), b.Type(m).DType))
		b.Assign(m, next)
		b.Assign(w[i], b.Sub(w[i], next))
	}
	b.Output("loss", b.AllReduce(collective.Mean, "loss", loss)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: 2, State: map[string]bool{"m0": true, "m1": true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.State) != 2 || count(parts, "allgather") != 2 {
		t.Errorf("%d moments in parts, and %d gathers, want 2 of both", len(list.State), count(parts, "allgather"))
	}
	if err := sameValues(steps(t, parts, 2, list, ownRows), steps(t, g, 2, ddp.Parts{}, ownRows)); err != nil {
		t.Error(err)
	}
}
