package winograd

import (
	"errors"
	"testing"

	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/engine/enginetest"
	"ebtrain/ddp/exec/cpu/native"
)

func over(n int) engine.Engine { return Over(native.New(n), n) }

// always computes all that it can, even what is slower this way.
func always(n int) engine.Engine {
	e := over(n)
	if w, ok := e.(*Engine); ok {
		w.always = true
	}
	return e
}

func TestConformance(t *testing.T) { enginetest.RunTiled(t, always) }

func BenchmarkEngine(b *testing.B) { enginetest.Bench(b, over) }

func TestClosed(t *testing.T) {
	e, ok := always(2).(*Engine)
	if !ok {
		t.Skip("no AVX-512")
	}
	for _, c := range enginetest.Convs() {
		for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			if !fits(c.ConvProblem) {
				continue
			}
			k, err := e.Conv(op, c.ConvProblem)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			if err := k.Run(nil, nil, nil, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("run of a closed kernel: got %v, want %v", err, ErrClosed)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Conv(engine.Forward, enginetest.Convs()[0].ConvProblem); err == nil {
		t.Error("a closed engine made a kernel")
	}
}

// TestRunAllocatesNothing, on one and on two threads.
func TestRunAllocatesNothing(t *testing.T) {
	for threads := 1; threads <= 2; threads++ {
		e := always(threads)
		for _, c := range enginetest.Convs() {
			for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
				k, err := e.Conv(op, c.ConvProblem)
				if err != nil {
					t.Fatal(err)
				}
				if n := enginetest.Allocs(k, op, c.ConvProblem); n != 0 {
					t.Errorf("%d threads, %v, %s: %v allocations a run, want 0", threads, op, c.Name, n)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
