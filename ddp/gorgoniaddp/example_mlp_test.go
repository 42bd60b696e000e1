package gorgoniaddp_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"ebtrain/collective"
	"ebtrain/ddp/gorgoniaddp"
)

// Two ranks learn y = sin(x₀) + x₁² together: each sees half of the points.
// Here the ranks are goroutines; in a job each is a process, and comm comes
// from the launcher's rendezvous.
func Example() {
	const size, points = 2, 64
	var wg sync.WaitGroup
	for _, comm := range newGroup(size) {
		wg.Go(func() {
			if err := learn(context.Background(), comm, points); err != nil {
				fmt.Println("error:", err)
			}
		})
	}
	wg.Wait()
	// Output:
	// step   0: loss 0.83
	// step 100: loss 0.01
	// step 200: loss 0.00
	// step 300: loss 0.00
	// the replicas are equal
}

func learn(ctx context.Context, comm collective.Comm, points int) (err error) {
	batch := points / comm.Size()
	var x, y, cost *gorgonia.Node
	var learnables gorgonia.Nodes
	var vm gorgonia.VM
	err = gorgoniaddp.Build(func() (err error) {
		g, rng := gorgonia.NewGraph(), rand.New(rand.NewPCG(1, uint64(comm.Rank())))
		weight := func(name string, rows, cols int) *gorgonia.Node { // rank 0's values count
			return gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(rows, cols),
				gorgonia.WithName(name), gorgonia.WithInit(uniform(rng)))
		}
		x = gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(batch, 2), gorgonia.WithName("x"))
		y = gorgonia.NewMatrix(g, tensor.Float64, gorgonia.WithShape(batch, 1), gorgonia.WithName("y"))
		w1, b1, w2 := weight("w1", 2, 16), weight("b1", 1, 16), weight("w2", 16, 1)
		learnables = gorgonia.Nodes{w1, b1, w2}

		hidden := gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, w1)), b1, nil, []byte{0}))
		pred := gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Tanh(hidden)), w2))
		cost = gorgonia.Must(gorgonia.Mean(gorgonia.Must(gorgonia.Square(gorgonia.Must(gorgonia.Sub(pred, y))))))
		if _, err := gorgoniaddp.Grad(cost, learnables...); err != nil {
			return err
		}
		vm = gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(learnables...))
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, vm.Close()) }()

	xs, ys := examples(comm.Rank()*batch, batch, points)
	if err := gorgonia.Let(x, xs); err != nil {
		return err
	}
	if err := gorgonia.Let(y, ys); err != nil {
		return err
	}

	replica, err := gorgoniaddp.New(ctx, comm, learnables, gorgoniaddp.Defaults())
	if err != nil {
		return err
	}
	solver := gorgonia.NewAdamSolver(gorgonia.WithLearnRate(0.02))
	for step := range 301 {
		if err := replica.Step(ctx, vm, solver); err != nil {
			return err
		}
		loss := cost.Value().Data().(float64)
		if err := replica.Mean(ctx, &loss); err != nil {
			return err
		}
		if comm.Rank() == 0 && step%100 == 0 {
			fmt.Printf("step %3d: loss %.2f\n", step, loss)
		}
	}
	if err := replica.CheckReplicas(ctx); err != nil {
		return err
	}
	if comm.Rank() == 0 {
		fmt.Println("the replicas are equal")
	}
	return nil
}

// uniform draws initial values from [-½, ½).
func uniform(rng *rand.Rand) gorgonia.InitWFn {
	return func(_ tensor.Dtype, shape ...int) any {
		values := make([]float64, tensor.Shape(shape).TotalSize())
		for i := range values {
			values[i] = rng.Float64() - 0.5
		}
		return values
	}
}

// examples is points first … first+n-1 of all: x (n, 2) in [-1, 1]², y (n, 1).
func examples(first, n, all int) (x, y *tensor.Dense) {
	xs, ys := make([]float64, 0, 2*n), make([]float64, 0, n)
	for i := first; i < first+n; i++ {
		a := 2*float64(i)/float64(all-1) - 1
		b := math.Cos(7 * float64(i))
		xs = append(xs, a, b)
		ys = append(ys, math.Sin(a)+b*b)
	}
	return tensor.New(tensor.WithShape(n, 2), tensor.WithBacking(xs)), tensor.New(tensor.WithShape(n, 1), tensor.WithBacking(ys))
}
