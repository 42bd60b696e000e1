package cuda

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/graph"
)

// optimiser steps some small weights down the gradient of what all of them are in, with
// norms: chains of small steps that do not depend on each other.
func optimiser(t *testing.T) *graph.Graph {
	var b graph.Builder
	x := b.Input("x", graph.T(graph.F32, 8, 6))
	for k := range 5 {
		w := b.Var(fmt.Sprint("w", k), graph.T(graph.F32, 6, 3+k))
		b.Scope(fmt.Sprint("layer ", k), func() {
			d := b.Grad(b.Mean(b.Square(b.Tanh(b.MatMul(x, w, false, false)))), w)[0]
			b.Output(fmt.Sprint("size ", k), b.Sum(b.Square(d)))
			b.Assign(w, b.Sub(w, b.Mul(d, b.Exp(b.Neg(b.Square(w))))))
		})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// train runs an optimiser four times, and is all outputs and then the weights, and how many
// launches the plan's steps are.
func train(t *testing.T, c Config, o exec.Options) (got []float32, launches, steps int) {
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	o.Name = "optimiser"
	v := b.NewVars()
	for k := range 5 {
		w := exec.NewTensor(graph.T(graph.F32, 6, 3+k))
		for i := range w.F32() {
			w.F32()[i] = float32((i*7+k)%13)/13 - 0.4
		}
		if err := v.Set(fmt.Sprint("w", k), w); err != nil {
			t.Fatal(err)
		}
	}
	o.Vars = v
	p, err := b.Compile(optimiser(t), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for r := range 4 {
		for i := range p.Input("x").F32() {
			p.Input("x").F32()[i] = float32((i+r)%11)/11 - 0.5
		}
		if err := exec.Run(ctx, p); err != nil {
			t.Fatal(err)
		}
		for k := range 5 {
			got = append(got, p.Output(fmt.Sprint("size ", k)).F32()...)
		}
	}
	launches, steps = p.Stats().Steps, len(p.(*program).plan.Steps)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for k := range 5 {
		w, err := v.Get(fmt.Sprint("w", k))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, w.F32()...)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	return got, launches, steps
}

// TestBatches: what is small shares launches, and however a run is done, captured, step
// by step, traced, profiled, on one lane or many, held up at random, the bits are the same.
func TestBatches(t *testing.T) {
	m := cudatest.Use(t)
	want, shared, all := train(t, Config{Plain: true, Graphs: GraphsOff, Lanes: 1}, exec.Options{})
	steps := map[string]int{}
	trace := func() func(exec.Event) { return func(e exec.Event) { steps[e.Scope]++ } }
	m.Set("SEED", "3")
	m.Set("DELAY", "200")
	for name, run := range map[string]struct {
		c Config
		o exec.Options
	}{
		"captured":  {Config{Graphs: GraphsOn}, exec.Options{}},
		"launched":  {Config{Graphs: GraphsOff}, exec.Options{}},
		"traced":    {Config{Graphs: GraphsOn, Lanes: 3}, exec.Options{Trace: trace}},
		"profiled":  {Config{Graphs: GraphsOn}, exec.Options{Profile: true}},
		"two lanes": {Config{Graphs: GraphsOn, Lanes: 2}, exec.Options{}},
	} {
		run.c.Plain = true
		if got, _, _ := train(t, run.c, run.o); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for k := range 5 {
		if scope := fmt.Sprint("layer ", k); !slices.ContainsFunc(slices.Collect(maps.Keys(steps)), func(s string) bool { return strings.HasPrefix(s, scope) }) {
			t.Errorf("the trace tells of %v, and not of %s", steps, scope)
		}
	}
	if shared > all*2/3 {
		t.Errorf("%d launches of %d steps", shared, all)
	}
	m.Clean()
}

// TestCountersApart: the counters by which blocks of a step meet are no other step's, which may
// run at the same time.
func TestCountersApart(t *testing.T) {
	cudatest.Use(t)
	b, err := New(Config{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	var of graph.Builder
	for i := range 3 {
		x := of.Input(fmt.Sprint(i), graph.T(graph.F32, 1<<16, 3+i))
		of.Output(fmt.Sprint("sum ", i), of.Sum(of.Tanh(x), 0))
	}
	g, err := of.Build()
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Compile(g, exec.Options{Name: "sums"})
	if err != nil {
		t.Fatal(err)
	}
	p := c.(*program)
	type span struct{ from, end driver.Ptr }
	var spans []span
	for i := range p.plan.Steps {
		list, err := kernel.For(p.plan, i)
		if n := kernel.Counters(list); err == nil && n > 0 {
			spans = append(spans, span{p.counters[i], p.counters[i] + driver.Ptr(n)})
		}
	}
	for i, a := range spans {
		for _, b := range spans[:i] {
			if a.from < b.end && b.from < a.end {
				t.Errorf("counters %v and %v overlap", a, b)
			}
		}
	}
	if len(spans) < 2 {
		t.Errorf("%d steps whose blocks meet: the test has lost its subject", len(spans))
	}
	if err := errors.Join(p.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
