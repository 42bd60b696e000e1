package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// randomStep is a random graph of bounded values on images, matrices and
// per-channel vectors, with collectives, aliases, assignments (swaps among
// them), and outputs that are leaves or read twice.
func randomStep(r *rand.Rand) (*graph.Graph, error) {
	var b graph.Builder
	image, matrix, vector := graph.T(graph.F32, 2, 3, 4, 4), graph.T(graph.F32, 6, 16), graph.T(graph.F32, 1, 3, 1, 1)
	types := []graph.Type{image, matrix, vector}
	pool := map[graph.Type][]graph.ID{}
	var vars []graph.ID
	for i, t := range types {
		for k := range 2 {
			v := b.Var(fmt.Sprintf("v%d%d", i, k), t)
			vars, pool[t] = append(vars, v), append(pool[t], v)
		}
		pool[t] = append(pool[t], b.Input(fmt.Sprintf("x%d", i), t), b.Full(t, 0.5))
	}
	w := b.Var("w", graph.T(graph.F32, 3, 3, 3, 3))
	one := func(t graph.Type) graph.ID { // late values more often
		p := pool[t]
		return p[max(r.IntN(len(p)), r.IntN(len(p)))]
	}
	for range 10 + r.IntN(50) {
		t := types[r.IntN(3)]
		var y graph.ID
		switch r.IntN(13) {
		case 0:
			y = b.Relu(one(t))
		case 1:
			y = b.LeakyRelu(one(t), 0.2)
		case 2:
			y = b.Scale(b.Add(one(t), one(t)), 0.5)
		case 3:
			y = b.Mul(b.Tanh(one(t)), one(t))
		case 4:
			y = b.Scale(b.Sub(one(image), one(vector)), 0.5)
		case 5:
			y = b.MeanKeep(one(image), 0, 2, 3)
		case 6:
			y = b.Tanh(b.Conv2D(one(image), w, graph.NewConv(3, 1, 1)))
		case 7:
			y = b.Tanh(b.MatMul(b.MatMul(one(matrix), one(matrix), false, true), one(matrix), false, false))
		case 8:
			y = b.Reshape(one(matrix), image.Shape)
		case 9:
			y = b.Reshape(one(image), matrix.Shape)
		case 10:
			out := b.AllReduce(collective.Mean, "r", one(t), one(vector), one(t))
			pool[t] = append(pool[t], out[0], out[2])
			y = out[1]
		case 11:
			y = b.StopGrad(one(t))
		case 12:
			y = b.MeanKeep(b.Add(one(image), b.Square(one(image))), 0, 2, 3)
		}
		pool[b.Type(y)] = append(pool[b.Type(y)], y)
	}
	for i, t := range types {
		b.Output(fmt.Sprintf("y%d", i), one(t))
	}
	for _, v := range vars {
		if r.IntN(3) > 0 {
			b.Assign(v, one(b.Type(v)))
		}
	}
	return b.Build()
}

// runRandom runs three steps of g on a group of two and returns each rank's
// outputs and variables, flat.
func runRandom(t *testing.T, g *graph.Graph, open func() exec.Backend) [2][]float64 {
	t.Helper()
	var results [2][]float64
	var errs [2]error
	var wg sync.WaitGroup
	for r, comm := range exectest.NewGroup(2) {
		be := open()
		wg.Go(func() {
			if results[r], errs[r] = threeSteps(be, comm, g); errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return results
}

func threeSteps(be exec.Backend, comm collective.Comm, g *graph.Graph) (all []float64, err error) {
	vars := be.NewVars()
	value := func(t graph.Type, seed uint64) *exec.Tensor {
		r, x := rand.New(rand.NewPCG(seed, uint64(comm.Rank()))), exec.NewTensor(t)
		for i := range x.F32() {
			x.F32()[i] = float32(r.Float64() - 0.5)
		}
		return x
	}
	var inputs []graph.Leaf
	for _, n := range g.Nodes() {
		if leaf, ok := n.Op.(graph.Leaf); ok && leaf.Kind == graph.Var {
			if err := vars.Set(leaf.Name, value(leaf.Type, uint64(len(leaf.Name)))); err != nil {
				return nil, err
			}
		} else if ok {
			inputs = append(inputs, leaf)
		}
	}
	p, err := be.Compile(g, exec.Options{Name: "random", Vars: vars, Comm: comm})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	add := func(x *exec.Tensor) {
		for i := range x.F32() {
			all = append(all, x.At(i))
		}
	}
	for step := range uint64(3) {
		for i, in := range inputs {
			if x := p.Input(in.Name); x != nil {
				copy(x.Bytes(), value(in.Type, 100*step+uint64(i)+10).Bytes())
			}
		}
		if err := exec.Run(context.Background(), p); err != nil {
			return nil, err
		}
		for _, o := range g.Outputs() {
			add(p.Output(o.Name))
		}
	}
	for _, name := range vars.Names() {
		x, err := vars.Get(name)
		if err != nil {
			return nil, err
		}
		add(x)
	}
	return all, nil
}

// Random graphs with collectives agree with the reference, rank by rank.
func TestRandomRanks(t *testing.T) {
	bes := [2]exec.Backend{open(t, Config{Threads: 1}), open(t, Config{Threads: 2})}
	for seed := range uint64(60) {
		g, err := randomStep(rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		got := runRandom(t, g, func() exec.Backend { next++; return bes[next-1] })
		want := runRandom(t, g, func() exec.Backend { return ref.New() })
		for r := range want {
			for i, w := range want[r] {
				if d := math.Abs(got[r][i] - w); !(d <= 1e-4*(1+math.Abs(w))) {
					t.Fatalf("seed %d, rank %d, number %d: got %v, want %v", seed, r, i, got[r][i], w)
				}
			}
		}
	}
}
