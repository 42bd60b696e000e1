package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// scene is a network's step on a device: an energy and its gradient, a draw, an
// assignment.
func scene() *graph.Graph {
	var b graph.Builder
	x, w := b.Input("x", graph.T(graph.F32, 2, 3, 5, 5)), b.Var("w", graph.T(graph.F32, 4, 3, 3, 3))
	var y graph.ID
	b.Scope("energy", func() {
		y = b.Mean(b.Square(b.Tanh(b.Apply(graph.Conv2D{Conv: graph.NewConv(3, 1, 1)}, x, w)[0])))
	})
	d := b.Grad(y, w)[0]
	b.Assign(w, b.Sub(w, b.Scale(d, 0.1)))
	b.Output("y", y)
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// play runs a scene from the device's opening to its closing, and is what each run
// gives.
func play(g *graph.Graph, c Config, runs int) (ys []float32, err error) {
	b, err := New(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	v := b.NewVars()
	w := exec.NewTensor(graph.T(graph.F32, 4, 3, 3, 3))
	for i := range w.F32() {
		w.F32()[i] = float32(i%7)/7 - 0.4
	}
	if err := v.Set("w", w); err != nil {
		return nil, err
	}
	p, err := b.Compile(g, exec.Options{Name: "scene", Vars: v})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for r := range runs {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32((i+r)%11)/11 - 0.5
		}
		if err := exec.Run(ctx, p); err != nil {
			return ys, err
		}
		ys = append(ys, p.Output("y").F32()[0])
	}
	if w, err = v.Get("w"); err != nil {
		return ys, err
	}
	return append(ys, w.F32()...), nil
}

// heldUp is a machine whose streams are held up at random.
func heldUp(t *testing.T, seed int) *cudatest.Machine {
	m := cudatest.Use(t)
	m.Set("SEED", fmt.Sprint(seed+1))
	m.Set("DELAY", "300")
	m.Set("ORDER", fmt.Sprint(seed%3))
	return m
}

// TestDelays plays a scene on streams that are held up at random: the bits are those of
// a machine that is not, captured or not.
func TestDelays(t *testing.T) {
	g := scene()
	cudatest.Use(t)
	want, err := play(g, Config{Plain: true, Graphs: GraphsOff, Lanes: 1}, 5)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 3 {
		for _, graphs := range []Graphs{GraphsOn, GraphsOff} {
			m := heldUp(t, seed)
			got, err := play(g, Config{Plain: true, Graphs: graphs}, 5)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("seed %d, graphs %d: %v, want %v", seed, graphs, got[:5], want[:5])
			}
			m.Clean()
		}
	}
}

// TestFaultsTogether: of several steps with indices out of range, side by side, the first is
// told, whichever comes first; and a run that has none is well after that.
func TestFaultsTogether(t *testing.T) {
	var b graph.Builder
	types := []graph.DType{graph.F32, graph.F64, graph.F32, graph.BF16}
	for k, dt := range types {
		b.Scope(fmt.Sprint("table", k), func() {
			b.Output(fmt.Sprint("y", k), b.Gather(b.Input(fmt.Sprint("x", k), graph.T(dt, 4, 2)), b.Input(fmt.Sprint("idx", k), graph.T(graph.I32, 3))))
		})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 3 {
		m := heldUp(t, seed)
		be, err := New(Config{Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		p, err := be.Compile(g, exec.Options{Name: "tables"})
		if err != nil {
			t.Fatal(err)
		}
		for n, bad := range [][]int{{0, 1, 2, 3}, {}, {1, 3}, {2, 3}, {0, 3}, {}, {0, 1, 2, 3}, {1, 2, 3}, {3}} {
			for k := range types {
				p.Input(fmt.Sprint("idx", k)).I32()[1] = 1
			}
			for _, k := range bad {
				p.Input(fmt.Sprint("idx", k)).I32()[1] = int32(10 + k)
			}
			err := exec.Run(t.Context(), p)
			if len(bad) == 0 {
				if err != nil {
					t.Errorf("seed %d, run %d: %v", seed, n, err)
				}
				continue
			}
			if want := fmt.Sprintf("table%d: gather: index %d at 1 is outside a table of 4 rows", bad[0], 10+bad[0]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("seed %d, run %d: got %v, want %s", seed, n, err, want)
			}
		}
		if err := errors.Join(p.Close(), be.Close()); err != nil {
			t.Error(err)
		}
		m.Clean()
	}
}

// TestIllegalAddress breaks the device in the middle of a replay: the error says which
// program and that the process must end.
func TestIllegalAddress(t *testing.T) {
	g := scene()
	m := cudatest.Use(t)
	if _, err := play(g, Config{Plain: true}, 3); err != nil {
		t.Fatal(err)
	}
	m.Fail("run:*", 30, 700)
	_, err := play(g, Config{Plain: true}, 1000)
	if e, ok := errors.AsType[*driver.Error](err); !ok || !e.Sticky() || !strings.Contains(err.Error(), `program "scene"`) {
		t.Errorf("got %v, want a sticky error of the program", err)
	}
}

// TestCutCapture ends the context of a run while it is captured: its error is the
// context's, nothing is said of graphs that cannot be, and nothing is left.
func TestCutCapture(t *testing.T) {
	for body, call := range map[bool]string{false: "cuStreamBeginCapture_v2", true: "cuStreamBeginCaptureToGraph"} {
		t.Run(call, func(t *testing.T) { cutCapture(t, Config{Plain: true, Body: body}, call) })
	}
}

func cutCapture(t *testing.T, c Config, call string) {
	m := cudatest.Use(t)
	var said []string
	c.Say = func(s string) { said = append(said, s) }
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	v := b.NewVars()
	if err := v.Set("w", exec.NewTensor(graph.T(graph.F32, 4, 3, 3, 3))); err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(scene(), exec.Options{Name: "scene", Vars: v})
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m.Set("FAULT", call+"=1=~300")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := p.Launch(ctx); err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	if err := p.Wait(t.Context()); !errors.Is(err, interrupted) || strings.Count(err.Error(), "program") != 1 {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(p.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if len(said) > 0 {
		t.Errorf("said %q", said)
	}
	m.Clean()
}
