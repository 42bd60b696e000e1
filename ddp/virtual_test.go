package ddp_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

const virtualRanks, perRank, features = 8, 2, 3

// model is one rank's step of a small model for virtualRanks ranks: noise,
// statistics over the global batch, a gradient, a step of the weights.
func model(t *testing.T) *graph.Graph {
	t.Helper()
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, perRank, features))
	key := b.Input("key", graph.KeyType)
	rate := b.Input("rate", graph.T(graph.F32))
	w := b.Var("w", graph.T(graph.F32, features, features))
	h := b.MatMul(b.Add(x, b.Draw(key, graph.Normal, philox.Testing, 0, b.Type(x))), w, false, false)
	moments := b.AllReduce(collective.Mean, "moments", b.MeanKeep(h, 0), b.MeanKeep(b.Square(h), 0))
	h = b.Tanh(b.Sub(h, b.Mul(moments[0], moments[1])))
	loss := b.Mean(b.Square(h))
	grad := b.AllReduce(collective.Mean, "grad", b.Grad(loss, w)[0])[0]
	b.Assign(w, b.Sub(w, b.Mul(rate, grad)))
	b.Output("loss", b.AllReduce(collective.Mean, "loss", loss)[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func shardsOf(world int) ddp.Shards {
	return ddp.Shards{Virtual: virtualRanks, World: world, Split: map[string]bool{"x": true}, Key: "key", Batch: perRank}
}

// train runs three steps of g on ranks that each play virtualRanks/len(comms)
// of the model's, and returns what rank 0 saw, after comparing all ranks.
func train(g *graph.Graph, comms []collective.Comm) ([]ddptest.Values, error) {
	world := len(comms)
	local := virtualRanks * perRank / world
	seen := make([][]ddptest.Values, world)
	err := ddptest.Each(world, func(rank int, _ collective.Comm) error {
		vars := ddptest.NewVars()
		weights := graph.T(graph.F32, features, features)
		if err := vars.Set("w", ddptest.Tensor(weights, ddptest.Noise(1, features*features))); err != nil {
			return err
		}
		data := ddptest.Noise(2, virtualRanks*perRank*features)
		for step := range 3 {
			out, err := ddptest.Run(g, vars, comms[rank], ddptest.Values{
				"x":   data[rank*local*features : (rank+1)*local*features],
				"key": {5, float64(step), float64(rank * local)}, "rate": {0.5},
			})
			if err != nil {
				return err
			}
			if out["w"], err = weightsOf(vars); err != nil {
				return err
			}
			seen[rank] = append(seen[rank], out)
		}
		return nil
	})
	for rank := range seen {
		if err == nil && !reflect.DeepEqual(seen[rank], seen[0]) {
			err = fmt.Errorf("ranks 0 and %d differ", rank)
		}
	}
	return seen[0], err
}

func weightsOf(vars exec.Vars) ([]float64, error) {
	w, err := vars.Get("w")
	if err != nil {
		return nil, err
	}
	return ddptest.Numbers(w), nil
}

// local are connected ranks, or the absence of any.
func local(t *testing.T, world int) []collective.Comm {
	t.Helper()
	comms := make([]collective.Comm, world)
	if world == 1 {
		return comms
	}
	group, err := host.NewLocal(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range group {
		comms[i] = c
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return comms
}

// Any number of ranks gives the bits of any other, and the numbers of as many
// real ranks as there are virtual ones.
func TestVirtualise(t *testing.T) {
	want, err := train(model(t), local(t, virtualRanks))
	if err != nil {
		t.Fatal(err)
	}
	for _, world := range []int{1, 2, 4, 8} {
		g, err := ddp.Virtualise(model(t), shardsOf(world))
		if err != nil {
			t.Fatal(err)
		}
		got, err := train(g, local(t, world))
		if err != nil {
			t.Fatal(err)
		}
		for step := range want {
			if !reflect.DeepEqual(got[step], want[step]) {
				t.Errorf("%d ranks, step %d: got %v, want the bits %v", world, step, got[step], want[step])
			}
		}
	}
}

// Bfloat16s are rounded once, after all have been added up: in steps, 1 and seven times
// 2⁻⁸ would stay 1.
func TestVirtualiseBF16(t *testing.T) {
	var b graph.Builder
	x := b.Cast(b.Input("x", graph.T(graph.F32, 1)), graph.BF16)
	b.Output("sum", b.Cast(b.AllReduce(collective.Sum, "all", x)[0], graph.F32))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	terms := []float64{1, 1. / 256, 1. / 256, 1. / 256, 1. / 256, 1. / 256, 1. / 256, 1. / 256}
	const want = 1 + 4./128 // nearest to 1 + 7/256, to even
	for _, world := range []int{1, 2, 8} {
		s := ddp.Shards{Virtual: virtualRanks, World: world, Split: map[string]bool{"x": true}, Batch: 1}
		cut, err := ddp.Virtualise(g, s)
		if err != nil {
			t.Fatal(err)
		}
		comms, n := local(t, world), virtualRanks/world
		if err := ddptest.Each(world, func(rank int, _ collective.Comm) error {
			out, err := ddptest.Run(cut, ddptest.NewVars(), comms[rank], ddptest.Values{"x": terms[rank*n : (rank+1)*n]})
			if err == nil && out["sum"][0] != want {
				err = fmt.Errorf("%d ranks: %v, want %v", world, out["sum"], want)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

// What all copies share is in the program once.
func TestVirtualiseSharesTheStep(t *testing.T) {
	g, err := ddp.Virtualise(model(t), shardsOf(2))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := g.Dump(&text); err != nil {
		t.Fatal(err)
	}
	for op, want := range map[string]int{"= tanh": 4, "= draw": 4, "= allreduce": 4, "assign %": 1} {
		if got := strings.Count(text.String(), op); got != want {
			t.Errorf("%d of %q, want %d", got, op, want)
		}
	}
}

// A variable of a rank's own is cut as samples are: each virtual rank keeps its rows,
// whichever rank plays it.
func TestVirtualiseOwnVariables(t *testing.T) {
	var b graph.Builder
	rows := graph.T(graph.F32, perRank, features)
	x, sum := b.Input("x", rows), b.Var("sum", rows)
	next := b.Add(b.Scale(sum, 0.5), x)
	b.Assign(sum, next)
	b.Output("mean", b.AllReduce(collective.Mean, "mean", b.Mean(b.Square(next)))[0])
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	data := ddptest.Noise(2, virtualRanks*perRank*features)
	// kept are the rows of all ranks, and the last output.
	kept := func(world int) (all, out []float64) {
		s := shardsOf(world)
		s.Split["sum"], s.Key = true, ""
		cut, err := ddp.Virtualise(g, s)
		if err != nil {
			t.Fatal(err)
		}
		comms, share := local(t, world), virtualRanks*perRank*features/world
		parts, means := make([][]float64, world), make([][]float64, world)
		err = ddptest.Each(world, func(rank int, _ collective.Comm) error {
			vars := ddptest.NewVars()
			start := ddptest.Tensor(graph.T(graph.F32, share/features, features), ddptest.Noise(3, virtualRanks*perRank*features)[rank*share:(rank+1)*share])
			if err := vars.Set("sum", start); err != nil {
				return err
			}
			for range 2 {
				out, err := ddptest.Run(cut, vars, comms[rank], ddptest.Values{"x": data[rank*share : (rank+1)*share]})
				if err != nil {
					return err
				}
				means[rank] = out["mean"]
			}
			left, err := vars.Get("sum")
			if err == nil {
				parts[rank] = ddptest.Numbers(left)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			all = append(all, p...)
		}
		return all, means[0]
	}
	want, mean := kept(virtualRanks)
	start := ddptest.Noise(3, len(want))
	for i, v := range want {
		if by := start[i]/4 + 1.5*data[i]; !(math.Abs(v-by) <= 1e-6) {
			t.Fatalf("value %d is %v, want %v", i, v, by)
		}
	}
	for _, world := range []int{1, 2, 4} {
		if got, m := kept(world); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(m, mean) {
			t.Errorf("%d ranks keep %v with the mean %v, want %v and %v", world, got, m, want, mean)
		}
	}
}

func TestVirtualiseErrors(t *testing.T) {
	unreduced := func(use func(b *graph.Builder, local graph.ID)) *graph.Graph {
		var b graph.Builder
		use(&b, b.Mean(b.Input("x", graph.T(graph.F32, perRank))))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	output := unreduced(func(b *graph.Builder, v graph.ID) { b.Output("loss", v) })
	assign := unreduced(func(b *graph.Builder, v graph.ID) { b.Assign(b.Var("w", graph.T(graph.F32)), v) })
	var b graph.Builder
	b.Output("y", b.AllReduce(collective.Sum, "all", b.Neg(b.Input("x", graph.T(graph.F32, 2, 0))))[0])
	empty, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	named := model(t)
	var f graph.Builder
	f.Output("k", f.Input("k", graph.T(graph.F32, 3)))
	floats, err := f.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		g      *graph.Graph
		change func(s *ddp.Shards)
		want   string
	}{
		{"an empty input", empty, func(s *ddp.Shards) { s.Key = "" }, "not inside its 0 entries"},
		{"output", output, func(*ddp.Shards) {}, "output loss depends on the samples of one virtual shard"},
		{"assign", assign, func(*ddp.Shards) {}, `the new value of var "w" depends on the samples`},
		{"output, a shard a rank", output, func(s *ddp.Shards) { s.World = s.Virtual }, "output loss depends on the samples of one virtual shard"},
		{"three shards", output, func(s *ddp.Shards) { s.Virtual = 3 }, "power of two, got 3"},
		{"three ranks", output, func(s *ddp.Shards) { s.World = 3 }, "8 virtual shards cannot be shared evenly by 3 ranks"},
		{"sixteen ranks", output, func(s *ddp.Shards) { s.World = 16 }, "up to 8 ranks"},
		{"no samples", output, func(s *ddp.Shards) { s.Batch = 0 }, "at least one sample"},
		{"split of nothing", named, func(s *ddp.Shards) { s.Split = map[string]bool{"x": true, "xs": true} }, `no input or variable "xs" to cut into virtual shards: want names of its leaves in Split (its inputs are "key", "rate", "x")`},
		{"split of a number", named, func(s *ddp.Shards) { s.Split["rate"] = true }, `input "rate" is one number`},
		{"key of nothing", named, func(s *ddp.Shards) { s.Key = "kye" }, `no input "kye" to name draws: want one of type i64[3] as Key (its inputs are "key", "rate", "x")`},
		{"key of another type", named, func(s *ddp.Shards) { s.Key = "rate" }, `input "rate" f32[] cannot name draws: want an input of type i64[3]`},
		{"key of floats", floats, func(s *ddp.Shards) { s.Split, s.Key = nil, "k" }, `input "k" f32[3] cannot name draws: want an input of type i64[3]`},
		{"key in a variable", named, func(s *ddp.Shards) { s.Key = "w" }, `no input "w" to name draws`},
		{"key in parts", named, func(s *ddp.Shards) { s.Split["key"] = true }, `input "key" is in Split and is Key`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := shardsOf(2)
			if tt.g != named {
				s.Key = ""
			}
			tt.change(&s)
			if _, err := ddp.Virtualise(tt.g, s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Names that a graph lacks are an error, unless they are those of several graphs.
func TestShardsOf(t *testing.T) {
	s := shardsOf(2)
	s.Split["y"], s.Split["w"] = true, false
	g := model(t)
	if _, err := ddp.Virtualise(g, s); err == nil {
		t.Error("there is no y, and no error")
	}
	of := s.Of(g)
	if want := map[string]bool{"x": true}; !reflect.DeepEqual(of.Split, want) || of.Key != "key" {
		t.Errorf("the graph has %v and the key %q, want %v and %q", of.Split, of.Key, want, "key")
	}
	if _, err := ddp.Virtualise(g, of); err != nil {
		t.Error(err)
	}
	var b graph.Builder
	b.Output("y", b.Input("rate", graph.T(graph.F32)))
	other, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if of := s.Of(other); len(of.Split) > 0 || of.Key != "" {
		t.Errorf("a graph without samples and draws has %v and the key %q", of.Split, of.Key)
	}
}
