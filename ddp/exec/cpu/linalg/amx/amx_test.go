package amx

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// best are the processor's kernels, or if it has none those in Go, which fuzz targets hold
// the others to.
func best(t *testing.T) kernels {
	k, ok := available()
	if !ok {
		t.Log("this processor has no AMX, or the system does not let a process use it: the kernels are loops in Go")
		return inGo
	}
	return k
}

// over is an engine with some kernels in front of one without bfloat16.
func over(t testing.TB, n int, k kernels) *Engine {
	team := threads.NewTeam(n)
	t.Cleanup(team.Close)
	return newEngine(team, native.On(team), k)
}

var ops = []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW}

// TestConformance is of problems of any channels, most of which are the other engine's.
func TestConformance(t *testing.T) {
	k := best(t)
	enginetest.RunBF16(t, func(n int) engine.Engine { return over(t, n, k) })
}

// TestConformanceWide is of problems that this engine takes, all but those of fewer pixels
// than a step.
func TestConformanceWide(t *testing.T) {
	k := best(t)
	enginetest.RunWideBF16(t, stepDepth, func(n int) engine.Engine { return over(t, n, k) })
}

// TestTakes says what is computed here, and what is left.
func TestTakes(t *testing.T) {
	e := over(t, 1, inGo)
	conv := func(change func(p *engine.ConvProblem)) engine.ConvProblem {
		p := enginetest.NewConvCase("", 2, 64, 5, 7, 32, enginetest.Convs()[0].Conv).ConvProblem
		p.BF16 = true
		change(&p)
		return p
	}
	few := func(p *engine.ConvProblem) { p.N, p.H, p.OH, p.W, p.OW = 1, 4, 4, 7, 7 } // 28 pixels
	for _, c := range []struct {
		name  string
		p     engine.ConvProblem
		takes map[engine.ConvOp]bool
	}{
		{"whole steps", conv(func(*engine.ConvProblem) {}), map[engine.ConvOp]bool{engine.Forward: true, engine.GradX: true, engine.GradW: true}},
		{"few pixels", conv(few), map[engine.ConvOp]bool{engine.Forward: true, engine.GradX: true}},
		{"float32", conv(func(p *engine.ConvProblem) { p.BF16 = false }), nil},
		{"half a step of channels", conv(func(p *engine.ConvProblem) { p.C = 48 }), nil},
		{"half a step of filters", conv(func(p *engine.ConvProblem) { p.O = 16 }), nil},
		{"groups", conv(func(p *engine.ConvProblem) { p.Groups = 2 }), nil},
	} {
		for _, op := range ops {
			k, err := e.Conv(op, c.p)
			if err != nil {
				t.Fatal(err)
			}
			if got := ours(k); got != c.takes[op] {
				t.Errorf("%s, %v: taken is %t, want %t", c.name, op, got, c.takes[op])
			}
		}
	}
	for _, c := range []struct {
		p     engine.MatMulProblem
		takes bool
	}{
		{engine.MatMulProblem{M: 3, N: 32, K: 64, BF16: true}, true},
		{engine.MatMulProblem{M: 3, N: 32, K: 64}, false},
		{engine.MatMulProblem{M: 3, N: 16, K: 64, BF16: true}, false},
		{engine.MatMulProblem{M: 3, N: 32, K: 63, TransB: true, BF16: true}, false},
		{engine.MatMulProblem{M: 32, N: 64, K: 33, TransA: true, BF16: true}, true},
		{engine.MatMulProblem{M: 32, N: 64, K: 31, TransA: true, BF16: true}, false},
		{engine.MatMulProblem{M: 32, N: 64, K: 64, TransA: true, TransB: true, BF16: true}, false},
	} {
		k, err := e.MatMul(c.p)
		if err != nil {
			t.Fatal(err)
		}
		if got := ours(k); got != c.takes {
			t.Errorf("%v: taken is %t, want %t", c.p, got, c.takes)
		}
	}
	if err := e.BF16(); err != nil {
		t.Errorf("bfloat16: %v", err)
	}
	if got, want := e.Name(), native.New(1).Name()+" + AMX"; got != want {
		t.Errorf("the name is %q, want %q", got, want)
	}
}

func ours(k engine.Kernel) bool {
	switch k.(type) {
	case *correlation, *gradient:
		return true
	}
	return false
}

// TestOn: kernels if there are any, or the other engine itself.
func TestOn(t *testing.T) {
	team := threads.NewTeam(1)
	t.Cleanup(team.Close)
	rest := native.On(team)
	_, ok := available()
	if e := On(team, rest); (e != engine.Engine(rest)) != ok {
		t.Errorf("kernels: %t; the engine is %s", ok, e.Name())
	}
}

// TestForgets: what a thread keeps from one run to the next has no influence, NaN neither.
func TestForgets(t *testing.T) {
	row := func(pixels int, window graph.Conv) engine.ConvProblem {
		p := enginetest.NewConvCase("", 1, 32, 1, pixels, 32, window).ConvProblem
		p.BF16 = true
		return p
	}
	for name, window := range map[string]graph.Conv{"windows": enginetest.Convs()[0].Conv, "plain": graph.NewConv(1, 1, 0)} {
		for _, op := range ops {
			few, many := row(33, window), row(64, window)
			run := func(e *Engine, p engine.ConvProblem, value float32) []float32 {
				na, nb := enginetest.Operands(op, p)
				got, err := enginetest.RunConv(e, op, p, slices.Repeat([]float32{value}, na), slices.Repeat([]float32{value}, nb))
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			used := over(t, 1, inGo)
			run(used, many, float32(math.NaN()))
			if got, want := run(used, few, 1), run(over(t, 1, inGo), few, 1); !slices.Equal(got, want) {
				t.Errorf("%v of %s: results are not what they are at first", op, name)
			}
		}
	}
}

func TestClosed(t *testing.T) {
	p := enginetest.NewConvCase("", 2, 32, 5, 7, 32, enginetest.Convs()[0].Conv).ConvProblem
	p.BF16 = true
	for _, op := range ops {
		for _, closes := range []string{"the kernel", "the engine"} {
			e := over(t, 2, inGo)
			k, err := e.Conv(op, p)
			if err != nil {
				t.Fatal(err)
			}
			if closes == "the kernel" {
				err = k.Close()
			} else {
				err = e.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Run(nil, nil, nil, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("%v, %s is closed: got %v, want %v", op, closes, err, ErrClosed)
			}
			if closes == "the engine" {
				if _, err := e.Conv(op, p); err == nil {
					t.Errorf("a closed engine made a kernel of %v", op)
				}
			}
		}
	}
}

// TestRunAllocatesNothing, on one and on two threads.
func TestRunAllocatesNothing(t *testing.T) {
	for n := 1; n <= 2; n++ {
		e := over(t, n, inGo)
		p := enginetest.NewConvCase("", 2, 32, 5, 7, 32, enginetest.Convs()[0].Conv).ConvProblem
		p.BF16 = true
		for _, op := range ops {
			k, err := e.Conv(op, p)
			if err != nil {
				t.Fatal(err)
			}
			if allocs := enginetest.Allocs(k, op, p); allocs != 0 {
				t.Errorf("%d threads, %v: %v allocations a run, want 0", n, op, allocs)
			}
		}
	}
}
