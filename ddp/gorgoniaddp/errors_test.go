package gorgoniaddp_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"ebtrain/collective"
	"ebtrain/ddp/gorgoniaddp"
)

// Whatever one rank declares wrongly, every rank returns the same sentence,
// none hangs, and the group can still be used.
func TestDeclarations(t *testing.T) {
	good := func() (gorgonia.Nodes, gorgoniaddp.Config) {
		return quadratic(tensor.Float64, "a:2x3", "b:4"), gorgoniaddp.Defaults()
	}
	for _, tc := range []struct {
		name     string
		change   func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) // on rank 2 only
		want     string
		mismatch bool
	}{
		{"shape", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return quadratic(tensor.Float64, "a:2x3", "b:5"), c
		}, `models differ: rank 0 has node 1 "b" float64 (4) where rank 2 has node 1 "b" float64 (5)`, true},
		{"type", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return quadratic(tensor.Float32, "a:2x3", "b:4"), c
		}, `rank 0 has node 0 "a" float64 (2, 3) where rank 2 has node 0 "a" float32 (2, 3)`, true},
		{"order", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[1], n[0]}, c
		}, `rank 0 has node 0 "a" float64 (2, 3) where rank 2 has node 0 "b" float64 (4)`, true},
		{"one node fewer", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return n[:1], c
		}, `rank 0 has node 1 "b" float64 (4) where rank 2 has no more nodes`, true},
		{"one node more", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return quadratic(tensor.Float64, "a:2x3", "b:4", "c:1"), c
		}, `rank 0 has no more nodes where rank 2 has node 2 "c" float64 (1)`, true},
		{"bucket size", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			c.BucketBytes = 64
			return n, c
		}, `rank 0 has buckets of 25000000 bytes where rank 2 has buckets of 64 bytes`, true},
		{"initial values", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			c.VerifyInit = true
			return n, c
		}, `rank 0 has initial values broadcast from rank 0 where rank 2 has initial values verified`, true},
		{"config", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			c.BucketBytes = 0
			return n, c
		}, `rank 2: want BucketBytes >= 1, got 0`, false},
		{"no nodes", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return nil, c
		}, `rank 2: no learnables given`, false},
		{"nil node", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[0], nil}, c
		}, `rank 2: node 1: is nil`, false},
		{"node twice", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[0], n[0]}, c
		}, `rank 2: node 1 "a": the same node as 0`, false},
		{"no derivative", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[0], learnable(gorgonia.NewGraph(), tensor.Float64, "b:4")}, c
		}, `rank 2: node 1 "b": has no derivative; give it to gorgoniaddp.Grad`, false},
		{"no value", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[0], gorgonia.NewVector(gorgonia.NewGraph(), tensor.Float64, gorgonia.WithName("b"), gorgonia.WithShape(4))}, c
		}, `rank 2: node 1 "b": has no value; give it one`, false},
		{"column-major", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			v := tensor.New(tensor.WithShape(2, 3), tensor.AsFortran(make([]float64, 6)))
			return rebind(n, 0, v), c
		}, `rank 2: node 0 "a": want a contiguous row-major tensor`, false},
		{"strided", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			v, err := tensor.New(tensor.Of(tensor.Float64), tensor.WithShape(2, 6)).Slice(nil, tensor.S(0, 3))
			if err != nil {
				panic(err)
			}
			return rebind(n, 0, v), c
		}, `rank 2: node 0 "a": want a contiguous row-major tensor`, false},
		{"value of another type", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			if err := gorgonia.Let(n[1], int32(1)); err != nil { // gorgonia does not check it
				panic(err)
			}
			return n, c
		}, `rank 2: node 1 "b": is float64 (4), but its value is int32 ()`, false},
		{"value of another shape", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			if err := gorgonia.Let(n[1], 1.0); err != nil { // nor this
				panic(err)
			}
			return n, c
		}, `rank 2: node 1 "b": is float64 (4), but its value is float64 ()`, false},
		{"integers", func(n gorgonia.Nodes, c gorgoniaddp.Config) (gorgonia.Nodes, gorgoniaddp.Config) {
			return gorgonia.Nodes{n[0], integers(n[0])}, c
		}, `rank 2: node 1 "k": want elements of type float32 or float64, got int32`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errs := within(t, 3, func(ctx context.Context, comm collective.Comm) error {
				nodes, cfg := good()
				if comm.Rank() == 2 {
					nodes, cfg = tc.change(nodes, cfg)
				}
				_, err := gorgoniaddp.New(ctx, comm, nodes, cfg)
				nodes, cfg = good()
				if _, again := gorgoniaddp.New(ctx, comm, nodes, cfg); again != nil {
					t.Errorf("rank %d: the group is not usable afterwards: %v", comm.Rank(), again)
				}
				return err
			})
			for rank, err := range errs {
				if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, collective.ErrMismatch) != tc.mismatch {
					t.Errorf("rank %d: got %v\nwant ...%s (mismatch %v)", rank, err, tc.want, tc.mismatch)
				}
			}
		})
	}
}

func TestVerifyInitAndCheckReplicas(t *testing.T) {
	cfg := gorgoniaddp.Defaults()
	cfg.VerifyInit = true
	for _, differing := range []int{0, 1} { // how many ranks are changed
		errs := within(t, 3, func(ctx context.Context, comm collective.Comm) error {
			nodes := quadratic(tensor.Float32, "a:2x3", "b:4")
			if differing > 0 && comm.Rank() == 1 {
				nodes[1].Value().Data().([]float32)[3] += 1e-7
			}
			_, err := gorgoniaddp.New(ctx, comm, nodes, cfg)
			return err
		})
		for rank, err := range errs {
			const want = `replicas differ: ranks [1] are not equal to rank 0, first at node 1 "b"`
			switch {
			case differing == 0 && err != nil:
				t.Errorf("rank %d: equal replicas: %v", rank, err)
			case differing == 1 && (!errors.Is(err, collective.ErrMismatch) || !strings.Contains(err.Error(), want)):
				t.Errorf("rank %d: got %v, want %s", rank, err, want)
			}
		}
	}
	for _, wrong := range [][2]int{{2, 1}, {1, 2}} { // after training went wrong, by rank 1 and 3: the node
		errs := within(t, 4, func(ctx context.Context, comm collective.Comm) error {
			nodes := quadratic(tensor.Float64, "a:2x3", "b:4", "c:2")
			r, err := gorgoniaddp.New(ctx, comm, nodes, gorgoniaddp.Defaults())
			if err != nil {
				return err
			}
			if err := r.CheckReplicas(ctx); err != nil {
				return err
			}
			if rank := comm.Rank(); rank%2 == 1 {
				nodes[wrong[rank/2]].Value().Data().([]float64)[0]++
			}
			return r.CheckReplicas(ctx)
		})
		for rank, err := range errs {
			const want = `ranks [1 3] are not equal to rank 0, first at node 1 "b"`
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("rank %d: got %v, want %s", rank, err, want)
			}
		}
	}
}

// A rank that cannot go on ends the step on all ranks, with its reason.
func TestOneRankFails(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error // on rank 1
		want string
	}{
		{"average before run", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			return r.Average(ctx)
		}, `gradient of node 0 "w1": not computed yet; call RunAll first`},
		{"no dual values", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			return r.Step(ctx, gorgonia.NewTapeMachine(m.x.Graph()), gorgonia.NewVanillaSolver())
		}, `gradient of node 0 "w1": lies in the machine's own memory`},
		{"run", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			return r.Step(ctx, brokenVM{m.vm}, gorgonia.NewVanillaSolver())
		}, `run: machine is broken`},
		{"solver", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			if err := r.Step(ctx, m.vm, brokenSolver{}); err == nil {
				return errors.New("Step hid the solver's error")
			}
			return r.Step(ctx, m.vm, gorgonia.NewVanillaSolver())
		}, `solver: solver is broken`},
		{"adamw", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			return r.Step(ctx, m.vm, gorgonia.NewAdamW())
		}, `solver: gorgonia's AdamW never changes the weights`},
		{"value replaced", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			if err := gorgonia.Let(m.learn[0], float32(1)); err != nil { // gorgonia does not check it
				return err
			}
			return r.CheckReplicas(ctx)
		}, `value of node 0 "w1": want 30 elements of f64 as declared, got 1 of f32`},
		{"value of another length", func(ctx context.Context, r *gorgoniaddp.Replica, m *model) error {
			if err := gorgonia.Let(m.learn[0], 1.0); err != nil {
				return err
			}
			return r.CheckReplicas(ctx)
		}, `value of node 0 "w1": want 30 elements of f64 as declared, got 1 of f64`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			errs := within(t, 2, func(ctx context.Context, comm collective.Comm) error {
				m, err := mlp.build(tensor.Float64, globalBatch/2, 1)
				if err != nil {
					return err
				}
				r, err := gorgoniaddp.New(ctx, comm, m.learn, gorgoniaddp.Defaults())
				if err != nil {
					return err
				}
				if err := m.feed(0, comm.Rank(), 2); err != nil {
					return err
				}
				if comm.Rank() == 1 {
					return tc.fail(ctx, r, m)
				}
				solver := gorgonia.NewVanillaSolver()
				for range 2 { // the second step at the latest meets the failure
					if err := r.Step(ctx, m.vm, solver); err != nil {
						return err
					}
				}
				return nil
			})
			for rank, err := range errs {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("rank %d: got %v, want ...%s", rank, err, tc.want)
				}
			}
			if !errors.Is(errs[0], collective.ErrAborted) || !strings.Contains(errs[0].Error(), "rank 1: ") {
				t.Errorf("rank 0: got %v, want an abort that names rank 1", errs[0])
			}
		})
	}
}

func TestContextEndsAverage(t *testing.T) {
	errs := within(t, 2, func(ctx context.Context, comm collective.Comm) error {
		m, err := mlp.build(tensor.Float64, globalBatch/2, 1)
		if err != nil {
			return err
		}
		r, err := gorgoniaddp.New(ctx, comm, m.learn, gorgoniaddp.Defaults())
		if err != nil || comm.Rank() == 1 { // rank 1 never comes to the step
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, errors.New("step took too long"))
		defer cancel()
		if err := m.feed(0, 0, 2); err != nil {
			return err
		}
		return r.Step(ctx, m.vm, gorgonia.NewVanillaSolver())
	})
	if errs[1] != nil || errs[0] == nil || !strings.Contains(errs[0].Error(), "step took too long") {
		t.Errorf("got %v, want rank 0 to give the context's cause", errs)
	}
}

func TestMean(t *testing.T) {
	for rank, err := range within(t, 4, func(ctx context.Context, comm collective.Comm) error {
		r, err := gorgoniaddp.New(ctx, comm, quadratic(tensor.Float32, "a:1"), gorgoniaddp.Defaults())
		if err != nil {
			return err
		}
		loss, accuracy := float64(comm.Rank()), 1.0
		if err := r.Mean(ctx, &loss, &accuracy); err != nil {
			return err
		}
		if loss != 1.5 || accuracy != 1 {
			t.Errorf("rank %d: means %v, %v, want 1.5, 1", comm.Rank(), loss, accuracy)
		}
		if comm.Rank() == 0 {
			return r.Mean(ctx, &loss)
		}
		return r.Mean(ctx, &loss, &accuracy)
	}) {
		if !errors.Is(err, collective.ErrMismatch) {
			t.Errorf("rank %d: got %v for different numbers of scalars, want a mismatch", rank, err)
		}
	}
}

// within runs f on size ranks and fails the test if they are not done in time.
func within(t *testing.T, size int, f func(ctx context.Context, comm collective.Comm) error) []error {
	t.Helper()
	done := make(chan []error, 1)
	go func() { done <- ranks(t.Context(), size, f) }()
	select {
	case errs := <-done:
		return errs
	case <-time.After(30 * time.Second):
		t.Fatal("ranks hang")
		return nil
	}
}

// quadratic is a graph whose cost is the sum of squares of all learnables,
// each given as "name:2x3"; it returns them, differentiated.
func quadratic(dt tensor.Dtype, specs ...string) (nodes gorgonia.Nodes) {
	err := gorgoniaddp.Build(func() error {
		g := gorgonia.NewGraph()
		var cost *gorgonia.Node
		for _, s := range specs {
			n := learnable(g, dt, s)
			nodes = append(nodes, n)
			c := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Square(n))))
			if cost != nil {
				c = gorgonia.Must(gorgonia.Add(cost, c))
			}
			cost = c
		}
		_, err := gorgoniaddp.Grad(cost, nodes...)
		return err
	})
	if err != nil {
		panic(err)
	}
	return nodes
}

// learnable is one node, given as "name:2x3".
func learnable(g *gorgonia.ExprGraph, dt tensor.Dtype, spec string) *gorgonia.Node {
	name, dims, _ := strings.Cut(spec, ":")
	var shape []int
	for _, d := range strings.Split(dims, "x") {
		shape = append(shape, int(d[0]-'0'))
	}
	return param(g, dt, rand.New(rand.NewPCG(3, 3)), name, shape...)
}

// rebind gives node i of nodes another value.
func rebind(nodes gorgonia.Nodes, i int, v gorgonia.Value) gorgonia.Nodes {
	if err := gorgonia.Let(nodes[i], v); err != nil {
		panic(err)
	}
	return nodes
}

// integers is an int32 node that passes for differentiated.
func integers(deriv *gorgonia.Node) *gorgonia.Node {
	v := tensor.New(tensor.Of(tensor.Int32), tensor.WithShape(2))
	n := gorgonia.NewVector(gorgonia.NewGraph(), tensor.Int32, gorgonia.WithName("k"), gorgonia.WithValue(v))
	gorgonia.SetDerivOf(deriv, n)
	return n
}

type brokenVM struct{ gorgonia.VM }

func (brokenVM) RunAll() error { return errors.New("machine is broken") }

type brokenSolver struct{}

func (brokenSolver) Step([]gorgonia.ValueGrad) error { return errors.New("solver is broken") }
