package exectest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// patience bounds what ranks do together: more is a hang, on a machine of any load.
const patience = 3 * time.Minute

// Ranks is how ranks under test come to their backends and to each other.
type Ranks struct {
	// Open makes a rank's backend, which is closed when its runs are over.
	Open func(t *testing.T, rank int) exec.Backend
	// Group makes the ends of a group of n ranks, which it closes when the test ends.
	Group func(t *testing.T, n int) []collective.Comm
	Steps int // of each program; 0 is 3
}

// RunCollectives runs graphs with collectives on groups of those sizes, each rank a
// goroutine with its own backend, and holds each rank to the reference. parts are lengths
// of what a rank has of vectors that are scattered.
func RunCollectives(t *testing.T, r Ranks, dt graph.DType, sizes, parts []int) {
	for _, ranks := range sizes {
		graphs := map[string]func() (*graph.Graph, error){
			"":                                 func() (*graph.Graph, error) { return parallelStep(dt) },
			", a sum that is reduced and read": func() (*graph.Graph, error) { return readAsWell(dt) },
		}
		for _, part := range parts {
			graphs[fmt.Sprintf(", parts of %d", part)] = func() (*graph.Graph, error) { return scatteredStep(dt, ranks, part) }
		}
		for name, build := range graphs {
			t.Run(fmt.Sprintf("%d ranks%s", ranks, name), func(t *testing.T) {
				g, err := build()
				if err != nil {
					t.Fatal(err)
				}
				r.compare(t, ranks, g, dt)
			})
		}
	}
}

// runCollectives holds backends to what they promise of collectives.
func runCollectives(t *testing.T, open func(t *testing.T) exec.Backend, dt graph.DType) {
	r := among(func(t *testing.T, _ int) exec.Backend { return open(t) }, 0)
	RunCollectives(t, r, dt, []int{1, 2, 3}, []int{1, 5, 32}) // of odd lengths, and of whole lines
	t.Run("a world of one is the identity", func(t *testing.T) { checkIdentity(t, open(t), dt) })
	t.Run("abort", func(t *testing.T) { checkAbort(t, open(t), dt) })
	t.Run("connect", func(t *testing.T) { checkConnect(t, open(t)) })
}

// parallelStep is a data-parallel step: local losses, gradients reduced in two
// buckets (one of several values, of odd sizes), a reduced statistic inside the
// loss, differentiated through, and assignments.
func parallelStep(dt graph.DType) (*graph.Graph, error) {
	var b graph.Builder
	x := b.Input("x", graph.T(dt, 4, 3))
	w, u := b.Var("w", graph.T(dt, 3, 5)), b.Var("u", graph.T(dt, 5))
	h := b.MatMul(x, w, false, false)
	mean := b.AllReduce(collective.Mean, "statistics", b.Mean(h, 0))[0]
	loss := b.Mean(b.Square(b.Add(b.Tanh(b.Sub(h, mean)), u)))
	g := b.Grad(loss, w, u)
	g = append(b.AllReduce(collective.Mean, "bucket 0", g...), b.AllReduce(collective.Sum, "bucket 1", g[1], loss, g[0])...)
	for i, d := range g {
		b.Output(fmt.Sprintf("g%d", i), d)
	}
	b.Output("mean", mean)
	b.Assign(w, b.Sub(w, b.Scale(g[0], 0.1)))
	b.Assign(u, b.Sub(u, b.Scale(g[1], 0.1)))
	return b.Build()
}

// scatteredStep is a step of descent with momentum on vectors of which each rank moves
// a part, and keeps the momentum of it: gradients scattered, one of them also seen as
// a whole, weights gathered, and what is gathered used once more in the same step.
func scatteredStep(dt graph.DType, ranks, part int) (*graph.Graph, error) {
	var b graph.Builder
	vec, mine := graph.T(dt, ranks*part), graph.T(dt, part)
	x := b.Input("x", graph.T(dt, 4, 3))
	w, u, m := b.Var("w", vec), b.Var("u", vec), b.Var("m", mine)
	scale := b.Reshape(b.Sum(b.Mul(x, x)), graph.D(1))
	loss := b.Sum(b.Square(b.Sub(b.Mul(b.Tanh(w), u), b.BroadcastTo(scale, vec.Shape))))
	g := b.Grad(loss, w, u)
	moved := b.Add(b.Scale(m, 0.5), b.ReduceScatter(collective.Mean, ranks, "w", g[0]))
	w1 := b.AllGather(ranks, "new w", b.Sub(b.Part(ranks, w), b.Scale(moved, 0.01)))
	gu := b.ReduceScatter(collective.Sum, ranks, "u", b.Mul(g[1], w1))
	u1 := b.AllGather(ranks, "new u", b.Sub(b.Part(ranks, u), b.Scale(gu, 0.01)))
	b.Output("loss", loss)
	b.Output("mine", gu)
	b.Output("placed", b.Placed(ranks, b.Square(gu)))
	b.Output("part of a sum", b.Part(ranks, b.Exp(b.Scale(u1, 0.1))))
	b.Assign(w, w1)
	b.Assign(u, u1)
	b.Assign(m, moved)
	return b.Build()
}

// readAsWell reduces sums, and has others that follow from the rank's own: what a
// collective reduces in place is no longer there to be read. It is large enough for
// a compiler to make the others of the first.
func readAsWell(dt graph.DType) (*graph.Graph, error) {
	var b graph.Builder
	x := b.Input("x", graph.T(dt, 1024, 5))
	a := b.Input("a", graph.T(dt, 1, 5))
	y := b.Mul(x, a)
	all := b.AllReduce(collective.Sum, "sums", b.SumKeep(x, 0), b.Reshape(b.SumKeep(y, 0), graph.D(5)))
	b.Output("all x", all[0])
	b.Output("all y", all[1])
	b.Output("own", b.SumKeep(b.Sub(b.Neg(x), y), 0))
	b.Output("own and all", b.SumKeep(b.Sub(x, b.Mul(x, all[0])), 0))
	return b.Build()
}

// among are ranks of the group that is made here.
func among(open func(t *testing.T, rank int) exec.Backend, steps int) Ranks {
	return Ranks{Open: open, Group: func(_ *testing.T, n int) []collective.Comm { return NewGroup(n) }, Steps: steps}
}

// compare holds each rank to the reference.
func (r Ranks) compare(t *testing.T, ranks int, g *graph.Graph, dt graph.DType) {
	t.Helper()
	want := among(func(*testing.T, int) exec.Backend { return ref.New() }, r.Steps).run(t, ranks, g, dt)
	got := r.run(t, ranks, g, dt)
	for r := range want {
		for name := range want[r] {
			bound := 64 * dt.Epsilon() * (1 + largest(want[r][name]))
			if err := near(name, got[r][name], want[r][name], func(int) float64 { return bound }); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	}
}

// run runs the steps on a group and returns each rank's outputs and variables.
func (r Ranks) run(t *testing.T, ranks int, g *graph.Graph, dt graph.DType) []tensors {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	results, errs := make([]tensors, ranks), make([]error, ranks)
	var wg sync.WaitGroup
	for k, comm := range r.Group(t, ranks) {
		be := r.Open(t, k)
		wg.Go(func() {
			defer closeBackend(t, be) // beside the others, for whom it may wait
			if results[k], errs[k] = someSteps(ctx, be, g, dt, comm, cmp.Or(r.Steps, 3)); errs[k] != nil {
				comm.Abort(errs[k])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results
}

func someSteps(ctx context.Context, be exec.Backend, g *graph.Graph, dt graph.DType, comm collective.Comm, steps int) (out tensors, err error) {
	vars, inputs := tensors{}, map[string]Arg{}
	for _, n := range g.Nodes() {
		leaf, ok := n.Op.(graph.Leaf)
		switch {
		case ok && leaf.Kind == graph.Var:
			vars[leaf.Name] = Arg{Shape: leaf.Type.Shape}.Tensor(dt, "collectives", len(vars))
		case ok && leaf.Kind == graph.Input:
			inputs[leaf.Name] = Arg{Shape: leaf.Type.Shape}
		}
	}
	s, err := openSession(be, g, vars, comm)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.prog.Close()) }()
	for step := range steps {
		in := tensors{}
		for name, a := range inputs {
			in[name] = a.Tensor(dt, "collectives "+name, step*8+comm.Rank())
		}
		if out, err = s.runContext(ctx, g, in); err != nil {
			return nil, err
		}
	}
	for name := range vars {
		if out["var "+name], err = s.vars.Get(name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func checkIdentity(t *testing.T, be exec.Backend, dt graph.DType) {
	defer closeBackend(t, be)
	var b graph.Builder
	x, y := b.Input("x", graph.T(dt, 5)), b.Input("y", graph.T(dt, 2, 3))
	for _, op := range []collective.Op{collective.Sum, collective.Mean} {
		for i, v := range b.AllReduce(op, "all", x, y) {
			b.Output(fmt.Sprintf("%s%d", op, i), v)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	in := tensors{"x": float(5).Tensor(dt, "identity", 0), "y": float(2, 3).Tensor(dt, "identity", 1)}
	out, err := evaluate(be, g, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	for name, arg := range map[string]string{"sum0": "x", "mean0": "x", "sum1": "y", "mean1": "y"} {
		if err := sameBits("a world of one changed a value", name, out[name], in[arg]); err != nil {
			t.Error(err)
		}
	}
}

// checkConnect connects a world of one, to nothing, and one rank alone.
func checkConnect(t *testing.T, be exec.Backend) {
	defer closeBackend(t, be)
	if c, err := be.Connect(t.Context(), nil); c != nil || err != nil {
		t.Errorf("a world of one is connected by %v, %v, want nil", c, err)
	}
	c, err := be.Connect(t.Context(), NewGroup(1)[0])
	if err != nil || c.Rank() != 0 || c.Size() != 1 {
		t.Errorf("one rank is connected by %v, %v, want a group of one", c, err)
	}
}

// checkAbort leaves a rank alone in a collective, and aborts the group.
func checkAbort(t *testing.T, be exec.Backend, dt graph.DType) {
	defer closeBackend(t, be)
	g, err := parallelStep(dt)
	if err != nil {
		t.Fatal(err)
	}
	comm := NewGroup(2)[0]
	vars := tensors{"w": float(3, 5).Tensor(dt, "abort", 0), "u": float(5).Tensor(dt, "abort", 1)}
	s, err := openSession(be, g, vars, comm)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.prog.Launch(context.Background()); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("rank 1 has died")
	comm.Abort(cause)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.prog.Wait(ctx); !errors.Is(err, collective.ErrAborted) || !errors.Is(err, cause) {
		t.Errorf("Wait after an abort: got %v, want an error that wraps the abort and its cause", err)
	}
	if err := s.prog.Close(); err != nil {
		t.Errorf("close after an abort: %v", err)
	}
}
