package exectest

import (
	"context"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// checkQueue keeps the queue of a program full: outputs stay until the next Wait,
// variables are assigned in order, and a failed run takes those behind it along.
func checkQueue(t *testing.T, be exec.Backend, dt graph.DType) {
	table := exec.NewTensor(graph.T(dt, 2, 1))
	table.SetAt(0, 10)
	table.SetAt(1, 20)
	s, _ := program(t, be, tensors{"w": numbers(dt, 0), "table": table}, func(b *graph.Builder) {
		w := b.Var("w", graph.T(dt, 1))
		row := b.Reshape(b.Gather(b.Var("table", table.Type), b.Input("idx", graph.T(graph.I32, 1))), graph.D(1))
		sum := b.Add(b.Add(w, b.Input("x", graph.T(dt, 1))), row)
		b.Assign(w, sum)
		b.Output("y", sum)
	})
	depth := s.prog.Depth()
	if depth == 1 {
		t.Skip("needs a backend that queues runs; this one has a depth of 1, and launch and wait are tested without a queue")
	}
	ctx := context.Background()
	launch := func(x float64, idx int32) {
		t.Helper()
		s.prog.Input("x").SetAt(0, x)
		s.prog.Input("idx").I32()[0] = idx
		if err := s.prog.Launch(ctx); err != nil {
			t.Fatal(err)
		}
	}
	sum := 0.0
	for k := range 3 * depth {
		if launch(float64(k), int32(k%2)); k == 0 {
			continue // one is always queued behind the one that is waited for
		}
		if err := s.prog.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		sum += float64(k-1) + float64(10+10*((k-1)%2))
		wantNumbers(t, "y", s.prog.Output("y"), sum)
	}
	if err := s.prog.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	launch(0, 7)
	for range depth - 1 {
		launch(1, 0)
	}
	if err := s.prog.Wait(ctx); err == nil {
		t.Error("index 7 of 2: no error")
	}
	if err := s.prog.Wait(ctx); err == nil {
		t.Error("runs behind one that failed are waited for: no error")
	}
	if err := s.vars.Set("w", numbers(dt, 1)); err != nil {
		t.Fatal(err)
	}
	launch(2, 1)
	if err := s.prog.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	wantNumbers(t, "y after the failed run", s.prog.Output("y"), 23)
	launch(0, 0) // and is closed before it is waited for
}
