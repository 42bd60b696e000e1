package winograd

import (
	"errors"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/threads"
)

// each runs a test on every instruction set that this CPU has.
func each(t *testing.T, test func(t *testing.T, i *isa)) {
	list := isas()
	if len(list) == 0 {
		t.Skip("no transforms for this CPU")
	}
	for i := range list {
		t.Run(list[i].kernel.Name, func(t *testing.T) { test(t, &list[i]) })
	}
}

// always computes all that it can, even what is slower this way.
func always(t testing.TB, n int, i *isa) *Engine {
	e := newEngine(native.New(n), team(t, n), i)
	e.always = true
	return e
}

// closeAfter closes an engine at the end of a test.
func closeAfter(t *testing.T, e *Engine) {
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// team is closed with the test.
func team(t testing.TB, n int) *threads.Team {
	team := threads.NewTeam(n)
	t.Cleanup(team.Close)
	return team
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T, i *isa) {
		enginetest.RunTiled(t, func(n int) engine.Engine { return always(t, n, i) })
	})
}

func TestConformanceBF16(t *testing.T) {
	each(t, func(t *testing.T, i *isa) {
		if i.int16s == nil {
			t.Skip("no 16-bit integers on this instruction set: these problems are the other engine's")
		}
		enginetest.RunTiledBF16(t, func(n int) engine.Engine { return always(t, n, i) })
	})
}

// TestOn: the best instruction set there is, or the other engine itself.
func TestOn(t *testing.T) {
	rest, list := native.New(1), isas()
	e := On(team(t, 1), rest)
	if w, ok := e.(*Engine); ok != (len(list) > 0) || ok && w.f43.kernel.Name != list[0].kernel.Name {
		t.Errorf("got %s for %d instruction sets", e.Name(), len(list))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkEngine is the best instruction set. GODEBUG=cpu.avx512f=off makes that
// AVX2, for all packages of the program.
func BenchmarkEngine(b *testing.B) {
	enginetest.Bench(b, func(n int) engine.Engine { return On(team(b, n), native.New(n)) })
}

// BenchmarkEngineBF16 is all that fits, multiplied as bfloat16 may be.
func BenchmarkEngineBF16(b *testing.B) {
	list := isas()
	if len(list) == 0 || list[0].int16s == nil {
		b.Skip("no 16-bit integers on this CPU")
	}
	enginetest.BenchBF16(b, func(n int) engine.Engine { return always(b, n, &list[0]) })
}

func TestClosed(t *testing.T) { each(t, testClosed) }

func testClosed(t *testing.T, i *isa) {
	e := always(t, 2, i)
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

// A problem that makes no sense is refused, though its channels and windows are those of the
// transforms.
func TestRefuses(t *testing.T) {
	each(t, func(t *testing.T, i *isa) {
		e := always(t, 1, i)
		closeAfter(t, e)
		for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			p := enginetest.Convs()[0].ConvProblem
			if _, err := e.Conv(op, p); err != nil || !fits(p) {
				t.Errorf("%v of %v: %v, want a kernel of this engine", op, p, err)
			}
			p.OW++
			if _, err := e.Conv(op, p); err == nil {
				t.Errorf("%v of %v was accepted", op, p)
			}
		}
	})
}

// TestRunAllocatesNothing, on one and on two threads.
func TestRunAllocatesNothing(t *testing.T) { each(t, testRunAllocatesNothing) }

func testRunAllocatesNothing(t *testing.T, i *isa) {
	for n := 1; n <= 2; n++ {
		e := always(t, n, i)
		for _, c := range enginetest.Counted() {
			for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
				k, err := e.Conv(op, c.ConvProblem)
				if err != nil {
					t.Fatal(err)
				}
				if allocs := enginetest.Allocs(k, op, c.ConvProblem); allocs != 0 {
					t.Errorf("%d threads, %v, %s: %v allocations a run, want 0", n, op, c.Name, allocs)
				}
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
