package gorgoniaddp_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"ebtrain/collective"
	"ebtrain/ddp/gorgoniaddp"
)

const globalBatch = 8

// A model is one rank's graph with its inputs, learnables and machine.
type model struct {
	x, y  *gorgonia.Node
	learn gorgonia.Nodes
	vm    gorgonia.VM
	cost  gorgonia.Value
}

// An architecture makes the prediction from x and lists its learnables.
type architecture struct {
	name  string
	input []int // one example's shape
	net   func(g *gorgonia.ExprGraph, x *gorgonia.Node, rng *rand.Rand) (*gorgonia.Node, gorgonia.Nodes)
}

// mlp is 6 → 5 → 1 with biases and a scalar gain.
var mlp = architecture{"mlp", []int{6}, func(g *gorgonia.ExprGraph, x *gorgonia.Node, rng *rand.Rand) (*gorgonia.Node, gorgonia.Nodes) {
	dt := x.Dtype()
	w1, b1, w2 := param(g, dt, rng, "w1", 6, 5), param(g, dt, rng, "b1", 1, 5), param(g, dt, rng, "w2", 5, 1)
	gain := gorgonia.NewScalar(g, dt, gorgonia.WithName("gain"), gorgonia.WithValue(number(dt, 1+0.1*rng.NormFloat64())))
	h := gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, w1)), b1, nil, []byte{0}))
	h = gorgonia.Must(gorgonia.HadamardProd(gorgonia.Must(gorgonia.Tanh(h)), gain))
	return gorgonia.Must(gorgonia.Mul(h, w2)), gorgonia.Nodes{w1, b1, w2, gain}
}}

// convnet is one 3×3 convolution on 1×4×4 pictures, a rectifier and a linear layer.
var convnet = architecture{"conv", []int{1, 4, 4}, func(g *gorgonia.ExprGraph, x *gorgonia.Node, rng *rand.Rand) (*gorgonia.Node, gorgonia.Nodes) {
	dt := x.Dtype()
	k, w := param(g, dt, rng, "kernel", 2, 1, 3, 3), param(g, dt, rng, "w", 32, 1)
	h := gorgonia.Must(gorgonia.Conv2d(x, k, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
	h = gorgonia.Must(gorgonia.Reshape(gorgonia.Must(gorgonia.LeakyRelu(h, 0.1)), tensor.Shape{x.Shape()[0], 32}))
	return gorgonia.Must(gorgonia.Mul(h, w)), gorgonia.Nodes{k, w}
}}

// build makes a's graph for batch examples, with mean squared error as cost.
func (a architecture) build(dt tensor.Dtype, batch int, seed uint64) (*model, error) {
	m := &model{}
	err := gorgoniaddp.Build(func() error {
		g, rng := gorgonia.NewGraph(), rand.New(rand.NewPCG(seed, 1))
		shape := append([]int{batch}, a.input...)
		m.x = gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName("x"))
		m.y = gorgonia.NewTensor(g, dt, 2, gorgonia.WithShape(batch, 1), gorgonia.WithName("y"))
		var pred *gorgonia.Node
		pred, m.learn = a.net(g, m.x, rng)
		cost := gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Square(gorgonia.Must(gorgonia.Sub(pred, m.y))))))
		gorgonia.Read(cost, &m.cost)
		if _, err := gorgoniaddp.Grad(cost, m.learn...); err != nil {
			return err
		}
		m.vm = gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(m.learn...))
		return nil
	})
	return m, err
}

// feed binds this rank's part of the global batch of step.
func (m *model) feed(step, rank, size int) error {
	rng := rand.New(rand.NewPCG(7, uint64(step)))
	x := dense(m.x.Dtype(), rng, append([]int{globalBatch}, m.x.Shape()[1:]...)...)
	y := dense(m.y.Dtype(), rng, globalBatch, 1)
	part := globalBatch / size
	for node, all := range map[*gorgonia.Node]*tensor.Dense{m.x: x, m.y: y} {
		view, err := all.Slice(tensor.S(rank*part, (rank+1)*part))
		if err != nil {
			return err
		}
		mine := view.Materialize().(*tensor.Dense)
		if err := mine.Reshape(node.Shape()...); err != nil {
			return err
		}
		if err := gorgonia.Let(node, mine); err != nil {
			return err
		}
	}
	return nil
}

// A trace is what one rank saw: the mean loss of each step and the weights at the end.
type trace struct {
	losses  []float64
	weights []float64
}

// train runs steps of Adam on size ranks and checks that the replicas agree.
func train(t *testing.T, a architecture, dt tensor.Dtype, size, steps int) []trace {
	t.Helper()
	traces := make([]trace, size)
	errs := ranks(t.Context(), size, func(ctx context.Context, comm collective.Comm) (err error) {
		m, err := a.build(dt, globalBatch/size, uint64(comm.Rank())) // other initial values on each rank
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.vm.Close()) }()
		r, err := gorgoniaddp.New(ctx, comm, m.learn, gorgoniaddp.Config{BucketBytes: 200})
		if err != nil {
			return err
		}
		solver, tr := gorgonia.NewAdamSolver(gorgonia.WithLearnRate(0.01)), &traces[comm.Rank()]
		for step := range steps {
			if err := m.feed(step, comm.Rank(), size); err != nil {
				return err
			}
			if err := r.Step(ctx, m.vm, solver); err != nil {
				return err
			}
			loss := floats(m.cost)[0]
			if err := r.Mean(ctx, &loss); err != nil {
				return err
			}
			tr.losses = append(tr.losses, loss)
		}
		for _, n := range m.learn {
			tr.weights = append(tr.weights, floats(n.Value())...)
		}
		return r.CheckReplicas(ctx)
	})
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d of %d: %v", rank, size, err)
		}
	}
	return traces
}

// param is a learnable with normal initial values of deviation 0.3.
func param(g *gorgonia.ExprGraph, dt tensor.Dtype, rng *rand.Rand, name string, shape ...int) *gorgonia.Node {
	v := dense(dt, rng, shape...)
	if _, err := tensor.Mul(v, number(dt, 0.3), tensor.UseUnsafe()); err != nil {
		panic(err)
	}
	return gorgonia.NewTensor(g, dt, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name), gorgonia.WithValue(v))
}

// dense is a tensor of normal numbers.
func dense(dt tensor.Dtype, rng *rand.Rand, shape ...int) *tensor.Dense {
	d := tensor.New(tensor.Of(dt), tensor.WithShape(shape...))
	for i := range tensor.Shape(shape).TotalSize() {
		d.Set(i, number(dt, rng.NormFloat64()))
	}
	return d
}

func number(dt tensor.Dtype, x float64) any {
	if dt == tensor.Float32 {
		return float32(x)
	}
	return x
}

// floats is a copy of v's elements.
func floats(v gorgonia.Value) []float64 {
	switch d := v.Data().(type) {
	case float32:
		return []float64{float64(d)}
	case float64:
		return []float64{d}
	case []float64:
		return append([]float64(nil), d...)
	case []float32:
		x := make([]float64, len(d))
		for i := range d {
			x[i] = float64(d[i])
		}
		return x
	default:
		panic(fmt.Sprintf("floats of %T", d))
	}
}
