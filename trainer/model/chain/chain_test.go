package chain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
)

var pair = graph.T(graph.F64, 2)

// build makes a graph of f.
func build(t *testing.T, f func(b *graph.Builder)) *graph.Graph {
	t.Helper()
	var b graph.Builder
	f(&b)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// model are the variables of a model that has one weight, {2, 3}.
func model(t *testing.T) exec.Vars {
	t.Helper()
	vars := ddptest.NewVars()
	if err := vars.Set("model.w", ddptest.Tensor(pair, []float64{2, 3})); err != nil {
		t.Fatal(err)
	}
	return vars
}

func ones(dst []float64, _ graph.Shape, _ philox.Name) {
	for i := range dst {
		dst[i] = 1
	}
}

// growth is x ← w·x + y, y ← y + add, from x = 1, y = 0, times times; then twice
// x ← by·x. add is 100·i, by is 10 and 20.
func growth(t *testing.T, times int) Plan {
	x, y := Var("x", pair), Var("y", pair)
	x.Init = ones
	grow := build(t, func(b *graph.Builder) {
		xs, ys := b.Var(x.Name, pair), b.Var(y.Name, pair)
		b.Assign(xs, b.Add(b.Mul(b.Var("model.w", pair), xs), ys))
		b.Assign(ys, b.Add(ys, b.Input("add", pair)))
	})
	more := build(t, func(b *graph.Builder) {
		xs := b.Var(x.Name, pair)
		b.Assign(xs, b.Mul(xs, b.Input("by", pair)))
	})
	feed := func(name string, value func(i int) int) func(exec.Program) func(int) {
		return func(p exec.Program) func(int) {
			in := p.Input(name)
			return func(i int) {
				for k := range 2 {
					in.SetAt(k, float64(value(i)))
				}
			}
		}
	}
	return Plan{Vars: []nn.Variable{x, y}, Out: x.Name,
		Stages: []Stage{{Name: "grow", Graph: grow, Times: times, Feed: feed("add", func(i int) int { return 100 * i })},
			{Name: "more", Graph: more, Times: 2, Feed: feed("by", func(i int) int { return 10 * (i + 1) })}}}
}

// grown is what growth computes, in plain loops.
func grown(x, w float64, times int) float64 {
	y := 0.0
	for i := range times {
		x, y = w*x+y, y+float64(100*i)
	}
	return 10 * 20 * x
}

// The state lasts from one transition and one stage to the next, each run starts
// anew, and the model is left as it was.
func TestState(t *testing.T) {
	vars := model(t)
	c, err := New(ref.New(), vars, growth(t, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := c.Run(t.Context(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := ddptest.Near(ddptest.Numbers(got), []float64{grown(1, 2, 3), grown(1, 3, 3)}, 0); err != nil {
			t.Error(err)
		}
	}
	w, err := vars.Get("model.w")
	if err != nil || !slices.Equal(ddptest.Numbers(w), []float64{2, 3}) {
		t.Errorf("the model's weight is %v, %v", w, err)
	}
	closed(t, c)
}

// Continue starts from what the caller has set.
func TestContinue(t *testing.T) {
	vars, plan := model(t), growth(t, 2)
	c, err := New(ref.New(), vars, plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, c)
	if err := vars.Set(plan.Vars[0].Name, ddptest.Tensor(pair, []float64{5, 7})); err != nil {
		t.Fatal(err)
	}
	got, err := c.Continue(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ddptest.Near(ddptest.Numbers(got), []float64{grown(5, 2, 2), grown(7, 3, 2)}, 0); err != nil {
		t.Error(err)
	}
}

// Progress is told before each transition, over all stages, and at the end.
func TestProgress(t *testing.T) {
	c, err := New(ref.New(), model(t), growth(t, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, c)
	var told [][2]int
	if _, err := c.Run(t.Context(), 1, func(done, of int) { told = append(told, [2]int{done, of}) }); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int{{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 5}}; !slices.Equal(told, want) {
		t.Errorf("got %v, want %v", told, want)
	}
}

func closed(t *testing.T, c *Chain) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// walk is x ← x + ε for n samples, in stages of these lengths.
func walk(t *testing.T, n int, stages ...int) Plan {
	x := Var("x", graph.T(graph.F64, n, 3))
	p := Plan{Vars: []nn.Variable{x}, Out: x.Name}
	g := build(t, func(b *graph.Builder) {
		xs := b.Var(x.Name, x.Type)
		b.Assign(xs, b.Add(xs, b.Draw(b.Input(InputKey, graph.KeyType), graph.Normal, philox.Testing, 4, x.Type)))
	})
	for _, times := range stages {
		p.Stages = append(p.Stages, Stage{Name: "walk", Graph: g, Times: times})
	}
	return p
}

func result(t *testing.T, p Plan, seed uint64) []float64 {
	t.Helper()
	x, err := Run(t.Context(), ref.New(), model(t), p, seed)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// Draws are named by the seed, the number of the transition over all stages, and
// the sample.
func TestDraws(t *testing.T) {
	const n, seed = 4, 9
	want := make([]float64, n*3)
	for step := range 5 {
		for i := range n {
			var e [3]float64
			philox.Name{Seed: seed, Purpose: philox.Testing, Sub: 4, Step: uint32(step), Sample: uint32(i)}.Normal(e[:])
			for j, x := range e {
				want[3*i+j] += x
			}
		}
	}
	if err := ddptest.Near(result(t, walk(t, n, 5), seed), want, 1e-14); err != nil {
		t.Error(err)
	}
	if err := ddptest.Near(result(t, walk(t, n, 2, 0, 3), seed), result(t, walk(t, n, 5), seed), 0); err != nil {
		t.Errorf("cut into stages: %v", err)
	}
	if err := ddptest.Near(result(t, walk(t, 2, 5), seed), want[:2*3], 1e-14); err != nil {
		t.Errorf("two samples are not the first two of four: %v", err)
	}
	if ddptest.Near(result(t, walk(t, n, 5), seed+1), want, 1e-3) == nil {
		t.Error("another seed gives the same walk")
	}
}

// Each run begins with the initial values under its own seed.
func TestRunsBeginUnderTheirSeed(t *testing.T) {
	p := walk(t, 4, 0)
	p.Vars[0].Init = nn.Normal(1)
	for _, seed := range []uint64{8, 9} {
		if err := ddptest.Near(result(t, p, seed), ddptest.Numbers(p.Vars[0].Value(seed)), 0); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Plans of several sizes can follow each other beside one model.
func TestSizesBesideOneModel(t *testing.T) {
	vars, b := model(t), ref.New()
	for _, n := range []int{4, 2, 4} {
		x, err := Run(t.Context(), b, vars, walk(t, n, 5), 9)
		if err != nil {
			t.Fatal(err)
		}
		if err := ddptest.Near(ddptest.Numbers(x), result(t, walk(t, n, 5), 9), 0); err != nil {
			t.Errorf("%d samples: %v", n, err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := walk(t, 2, 1)
	for _, tt := range []struct {
		name   string
		change func(p *Plan)
		want   string
	}{
		{"good", func(*Plan) {}, ""},
		{"a variable of the model", func(p *Plan) { p.Vars = append(p.Vars, nn.Variable{Name: "model.w", Type: pair}) },
			`variable "model.w": want a name that begins with "chain."`},
		{"no result", func(p *Plan) { p.Out = "chain.y" }, `the result "chain.y" is none of the plan's variables`},
		{"fewer than no transitions", func(p *Plan) { p.Stages = []Stage{{Name: "walk", Graph: p.Stages[0].Graph, Times: -1}} },
			"stage walk: want at least 0 transitions, got -1"},
		{"assigns the model", func(p *Plan) {
			p.Stages = []Stage{{Name: "walk", Times: 1, Graph: build(t, func(b *graph.Builder) {
				w := b.Var("model.w", pair)
				b.Assign(w, b.Scale(w, 2))
			})}}
		}, `stage walk: assigns "model.w", which is none of the plan's variables`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := good
			tt.change(&p)
			c, err := New(ref.New(), model(t), p, 0)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if c != nil {
				closed(t, c)
			}
		})
	}
}

// crowded is a backend that has room for a number of programs, and counts those that
// are not released.
type crowded struct {
	exec.Backend
	room, open int
}

var errFull = errors.New("no room")

func (b *crowded) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	if b.open == b.room {
		return nil, errFull
	}
	p, err := b.Backend.Compile(g, o)
	b.open++
	return counted{p, b}, err
}

type counted struct {
	exec.Program
	in *crowded
}

func (p counted) Close() error {
	p.in.open--
	return p.Program.Close()
}

// readOnly are variables of which none can be set.
type readOnly struct{ exec.Vars }

func (readOnly) Set(string, *exec.Tensor) error { return errFull }

// What has no room is an error, and what was compiled before it is released, as it is
// after a run.
func TestNoRoom(t *testing.T) {
	if c, err := New(ref.New(), readOnly{model(t)}, growth(t, 2), 0); c != nil || !errors.Is(err, errFull) {
		t.Errorf("no room for variables: %v, %v", c, err)
	}
	for room, want := range []error{errFull, errFull, nil} {
		b := &crowded{Backend: ref.New(), room: room}
		if _, err := Run(t.Context(), b, model(t), growth(t, 2), 1); !errors.Is(err, want) || b.open != 0 {
			t.Errorf("room for %d programs of two: %v, and %d are not released", room, err, b.open)
		}
	}
}

// A run that is cancelled says where it was.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := New(ref.New(), model(t), walk(t, 2, 4), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, c)
	_, err = c.Run(ctx, 1, func(done, _ int) {
		if done == 2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "walk, transition 2") {
		t.Errorf("got %v", err)
	}
}
