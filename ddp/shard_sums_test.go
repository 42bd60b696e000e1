package ddp_test

import (
	"math"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/graph"
)

// norm is the length of gradients as one vector.
func norm(b *graph.Builder, grads []graph.ID) graph.ID {
	sum := b.Zeros(graph.T(graph.F32))
	for _, g := range grads {
		sum = b.Add(sum, b.Sum(b.Square(g)))
	}
	return b.Sqrt(sum)
}

// What is summed for a report alone is summed in parts, by one collective for all of a
// type: it is rounded otherwise, and all else has the bits that it has without. A single
// number is its own sum, and is reduced to all.
func TestSumsOfParts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		steps   func(s *shardModel)
		sharded int             // how many moments
		reduces int             // how many gradients and numbers are reduced to all, as collectives
		scatter int             // how many gradients are scattered, as collectives
		reports map[string]bool // outputs that may be rounded otherwise
	}{
		{"one of them", func(s *shardModel) {
			grads := s.grads()
			s.b.Output("size", s.b.Sum(s.b.Square(grads[0])))
			s.adam(grads)
		}, 8, 2, 1, map[string]bool{"size": true}},
		{"the norm of all", func(s *shardModel) {
			grads := s.grads()
			s.b.Output("norm", norm(s.b, grads))
			s.adam(grads)
		}, 8, 3, 1, map[string]bool{"norm": true}},
		{"two norms, and the loss beside them", func(s *shardModel) {
			row := []graph.ID{s.b.Reshape(s.b.AllReduce(collective.Mean, "before", s.loss())[0], graph.D(1))}
			for range 2 {
				grads := s.grads()
				row = append(row, s.b.Reshape(norm(s.b, grads), graph.D(1)))
				s.adam(grads)
			}
			s.b.Output("report", s.b.Concat(0, row...))
		}, 8, 5, 2, map[string]bool{"report": true}},
		{"in two types", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("wide", b.Sum(b.Square(b.Cast(grads[0], graph.F64))))
			b.Output("sizes", b.Sum(b.Abs(grads[3])))
			s.adam(grads)
		}, 8, 3, 1, map[string]bool{"wide": true, "sizes": true}},
		{"of what the optimiser reads, too", func(s *shardModel) {
			b, grads := s.b, s.grads()
			grads[0] = b.Scale(grads[0], 0.5)
			b.Output("half", b.Sum(b.Mul(grads[0], grads[0])))
			s.adam(grads)
		}, 8, 2, 1, map[string]bool{"half": true}},
		{"kept in a variable", func(s *shardModel) {
			b, grads := s.b, s.grads()
			kept := b.Var("wn", graph.T(graph.F32))
			b.Assign(kept, b.Add(kept, norm(b, grads)))
			s.adam(grads)
		}, 8, 2, 0, nil},
		{"reduced once more", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("again", b.AllReduce(collective.Sum, "again", b.Sum(b.Square(grads[3])))[0])
			s.adam(grads)
		}, 8, 3, 1, nil},
		{"not zero where the gradient is", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("cosines", b.Sum(b.Cos(grads[0])))
			b.Output("exponentials", b.Sum(b.Exp(grads[3])))
			b.Output("shifted", b.Sum(b.Square(b.Shift(grads[1], 1)))) // of another gradient, of which nothing else reads all
			s.adam(grads)
		}, 8, 2, 1, nil},
		{"no sum", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("largest", b.MaxKeep(b.Abs(grads[3]), 0, 1, 2))
			s.adam(grads)
		}, 8, 2, 1, nil},
		{"of rows", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("rows", b.Sum(b.Square(grads[0]), 1))
			s.adam(grads)
		}, 8, 2, 1, nil},
		{"of a gradient that is shown", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("gradient", grads[0])
			b.Output("size", b.Sum(b.Square(grads[0])))
			s.adam(grads)
		}, 8, 2, 1, nil},
		{"of what no optimiser reads", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("moments", b.Sum(b.Square(b.AllReduce(collective.Mean, "other", s.x)[0])))
			s.adam(grads)
		}, 8, 2, 1, nil},
		{"on each rank another", func(s *shardModel) {
			b, grads := s.b, s.grads()
			b.Output("own", b.AllReduce(collective.Sum, "own", b.Sum(b.Square(s.x)))[0])
			s.adam(grads)
		}, 8, 2, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, world := range []int{2, 3, 4} {
				s := newShardModel(world)
				tt.steps(s)
				g := s.build(t)
				want := steps(t, g, world, ddp.Parts{}, ownRows)
				parts, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: world, State: moments()})
				if err != nil {
					t.Fatal(err)
				}
				if got := [3]int{len(list.State), count(parts, "allreduce"), count(parts, "reducescatter")}; got != [3]int{tt.sharded, tt.reduces, tt.scatter} {
					t.Errorf("%d ranks: %v moments, all-reduces and reduce-scatters, want %v", world, got, [3]int{tt.sharded, tt.reduces, tt.scatter})
				}
				got := steps(t, parts, world, list, ownRows)
				for step := range got {
					for name := range tt.reports {
						nearly(t, name, got[step][name], want[step][name])
						got[step][name] = want[step][name]
					}
				}
				if err := sameValues(got, want); err != nil {
					t.Errorf("%d ranks: %v", world, err)
				}
				exact, list, err := ddp.ShardOptimizer(g, ddp.Sharding{World: world, State: moments(), Exact: true})
				if err != nil {
					t.Fatal(err)
				}
				if err := sameValues(steps(t, exact, world, list, ownRows), want); err != nil {
					t.Errorf("%d ranks, exact: %v", world, err)
				}
			}
		})
	}
}

// nearly demands equal numbers but for rounding.
func nearly(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", name, got, want)
	}
	for i, w := range want {
		if d := math.Abs(got[i] - w); !(d <= 1e-6*math.Abs(w)) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
