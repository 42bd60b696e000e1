package plan

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// With Options.Deterministic nothing shares a step with a reduction, and a
// collective of one rank is still there.
func TestDeterministic(t *testing.T) {
	sums := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		g, err := random(r, 40)
		if err != nil {
			t.Fatal(err)
		}
		p := New(g, Options{Name: "random", World: 1 + int(seed%2), Deterministic: true})
		p.Allocate()
		replay(t, p)
		for i, s := range p.Steps {
			f, ok := s.Op.(*Fused)
			if !ok || len(f.Sums) == 0 {
				continue
			}
			sums++
			if len(f.Sums)+len(f.Loads)+len(f.Consts) > 2 || len(f.Code)+len(f.Stores) > 0 {
				t.Fatalf("seed %d, step %d: the reduction is not alone in\n%s", seed, i, dump(t, p))
			}
		}
	}
	if sums == 0 {
		t.Error("no reductions in any graph")
	}
}

func TestDeterministicBoundary(t *testing.T) {
	for _, deterministic := range []bool{false, true} {
		p := New(step(t), Options{Name: "step", World: 1, Deterministic: deterministic})
		p.Allocate()
		want := map[string]int{"centred_squares": 1, "= copy": 1} // of the loss
		if deterministic {
			want = map[string]int{"centred_squares": 0, "= copy": 9} // and of every part of a collective
		}
		mustCount(t, string(dump(t, p)), want)
	}
}

const virtualRanks = 4

// shardsStep is a step of a small network for virtualRanks ranks of one image each: an image
// that a statistic of all ranks divides, and which a convolution reads; gradients of weights.
func shardsStep() (*graph.Graph, error) {
	var b graph.Builder
	f := func(dims ...int) graph.Type { return graph.T(graph.F32, dims...) }
	x, w, u := b.Input("x", f(1, 4, 4, 4)), b.Var("w", f(4, 4, 3, 3)), b.Var("u", f(4, 4, 3, 3))
	mean := b.AllReduce(collective.Mean, "mean", b.Mean(b.Square(x)))[0]
	y := b.Tanh(b.Conv2D(b.Tanh(x), w, same3))
	z := b.Mul(b.Conv2D(y, u, same3), b.Div(y, b.BroadcastTo(mean, b.Shape(y))))
	grads := b.AllReduce(collective.Mean, "gradients", b.Grad(b.Mean(b.Square(z)), w, u)...)
	b.Assign(w, b.Sub(w, grads[0]))
	b.Assign(u, b.Sub(u, grads[1]))
	return b.Build()
}

// numbersOf are some numbers of a type.
func numbersOf(typ graph.Type, seed uint64) *exec.Tensor {
	t, r := exec.NewTensor(typ), rand.New(rand.NewPCG(seed, 1))
	for i := range typ.Shape.Len() {
		t.SetAt(i, r.Float64()-0.5)
	}
	return t
}

// weightsAfter are the weights after a deterministic step on so many ranks.
func weightsAfter(step *graph.Graph, world int, o Options) (weights []*exec.Tensor, err error) {
	g, err := ddp.Virtualise(step, ddp.Shards{Virtual: virtualRanks, World: world, Split: map[string]bool{"x": true}, Batch: 1})
	if err != nil {
		return nil, err
	}
	comms, errs := make([]collective.Comm, world), make([]error, world)
	if world > 1 {
		comms = exectest.NewGroup(world)
	}
	var ranks sync.WaitGroup
	for rank, comm := range comms {
		ranks.Go(func() {
			w, err := shardsStepOf(g, rank, exec.Options{Comm: comm, Deterministic: true}, o)
			if errs[rank] = err; rank == 0 {
				weights = w
			}
		})
	}
	ranks.Wait()
	return weights, errors.Join(errs...)
}

// shardsStepOf runs one rank, and returns its weights.
func shardsStepOf(g *graph.Graph, rank int, eo exec.Options, o Options) (weights []*exec.Tensor, err error) {
	vars := &exec.HostVars{}
	typ := graph.T(graph.F32, 4, 4, 3, 3)
	for i, name := range []string{"w", "u"} {
		if err := vars.Set(name, numbersOf(typ, uint64(i))); err != nil {
			return nil, err
		}
	}
	eo.Name, eo.Vars = "step", vars
	p, err := planned{o: o}.Compile(g, eo)
	if err != nil {
		return nil, err
	}
	all, mine := numbersOf(graph.T(graph.F32, virtualRanks, 4, 4, 4), 2).Bytes(), p.Input("x").Bytes()
	copy(mine, all[rank*len(mine):])
	if err := exec.Run(context.Background(), p); err != nil {
		return nil, err
	}
	for _, name := range []string{"w", "u"} {
		w, err := vars.Get(name)
		if err != nil {
			return nil, err
		}
		weights = append(weights, w)
	}
	return weights, nil
}

// The weights after a deterministic step have the same bits on 1, 2 and 4 ranks, also where
// images may be bfloat16: what is rounded does not depend on what else is in the graph.
func TestDeterministicBits(t *testing.T) {
	step, err := shardsStep()
	if err != nil {
		t.Fatal(err)
	}
	for _, bf16 := range []bool{false, true} {
		var one []*exec.Tensor
		for _, world := range []int{1, 2, 4} {
			got, err := weightsAfter(step, world, Options{WeightsLast: true, BF16Images: bf16})
			if err != nil {
				t.Fatalf("%d ranks: %v", world, err)
			}
			if world == 1 {
				one = got
			}
			for i := range got {
				if !bytes.Equal(got[i].Bytes(), one[i].Bytes()) {
					t.Errorf("images in bfloat16 %v, %d ranks: weights %d have other bits than those of one rank", bf16, world, i)
				}
			}
		}
	}
}
