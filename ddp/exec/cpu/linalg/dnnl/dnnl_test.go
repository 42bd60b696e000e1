//go:build cgo && !nodnnl

package dnnl

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/cpu"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, func(threads int) engine.Engine {
		e, err := New(threads)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

// overWinograd is the engine as the backend has it: behind Winograd's.
func overWinograd(t testing.TB, open func(threads int) engine.Engine) func(threads int) engine.Engine {
	return func(n int) engine.Engine {
		team := threads.NewTeam(n)
		t.Cleanup(team.Close)
		return winograd.On(team, open(n))
	}
}

func TestConformanceUnderWinograd(t *testing.T) {
	enginetest.RunTiled(t, overWinograd(t, func(threads int) engine.Engine {
		e, err := New(threads)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}))
}

func TestConformanceUnderWinogradBF16(t *testing.T) {
	enginetest.RunTiledBF16(t, overWinograd(t, openBF16(t)))
}

// openBF16 makes engines that multiply bfloat16, or skips where the CPU cannot.
func openBF16(t testing.TB) func(threads int) engine.Engine {
	if _, err := tryBF16(1); err != nil {
		t.Skip(err)
	}
	return func(threads int) engine.Engine {
		e, err := tryBF16(threads)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func tryBF16(threads int) (engine.Engine, error) {
	e, err := New(threads)
	if err != nil {
		return nil, err
	}
	if err := e.BF16(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func TestConformanceBF16(t *testing.T) { enginetest.RunBF16(t, openBF16(t)) }

// fewChannelCases says of convolutions whether they are slower in bfloat16 with matrix
// instructions.
var fewChannelCases = []struct {
	op   engine.ConvOp
	c, o int
	slow bool
}{
	{engine.GradW, 3, 64, true}, {engine.GradW, 4, 64, true}, {engine.GradW, 8, 64, false},
	{engine.GradX, 64, 3, true}, {engine.GradX, 64, 4, true}, {engine.GradX, 64, 8, false},
	{engine.Forward, 3, 64, false}, {engine.Forward, 64, 3, false}, {engine.GradW, 64, 3, false},
}

func fewChannelProblem(c, o int) engine.ConvProblem {
	return enginetest.NewConvCase("", 2, c, 9, 9, o, enginetest.Convs()[0].Conv).ConvProblem
}

func TestSlow(t *testing.T) {
	for _, c := range fewChannelCases {
		if p := fewChannelProblem(c.c, c.o); slow(c.op, p) != c.slow {
			t.Errorf("%v of %v: slow is %t, want %t", c.op, p, !c.slow, c.slow)
		}
	}
	grouped := fewChannelProblem(3, 3)
	grouped.Groups = 3
	if slow(engine.GradW, grouped) {
		t.Errorf("%v counts as slow: groups were not measured", grouped)
	}
}

// TestFewChannels: with matrix instructions, what is slower in bfloat16 has float32's bits,
// and what is not has others.
func TestFewChannels(t *testing.T) {
	if !cpu.X86.HasAMXBF16 {
		t.Skip("this processor has no AMX: oneDNN multiplies as bfloat16 whatever it may (TestSlow runs)")
	}
	for _, c := range fewChannelCases {
		p := fewChannelProblem(c.c, c.o)
		results := make([][]float32, 2)
		for i := range results {
			p.BF16 = i == 1
			a, b := enginetest.Operands(c.op, p)
			results[i] = run(t, c.op, p, thirds(a), thirds(b))
		}
		if got := slices.Equal(results[0], results[1]); got != c.slow {
			t.Errorf("%v of %v: as in float32 is %t, want %t", c.op, p, got, c.slow)
		}
	}
}

// run is the result of a fresh engine of one thread.
func run(t *testing.T, op engine.ConvOp, p engine.ConvProblem, a, b []float32) []float32 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e, err := tryBF16(1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := enginetest.RunConv(e, op, p, a, b)
	if err := errors.Join(err, e.Close()); err != nil {
		t.Fatal(err)
	}
	return got
}

// thirds are numbers that bfloat16 has not.
func thirds(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%7-3) / 3
	}
	return v
}

func BenchmarkBF16(b *testing.B) { enginetest.BenchBF16(b, openBF16(b)) }

func TestClosed(t *testing.T) {
	e, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	k, err := e.MatMul(engine.MatMulProblem{M: 1, N: 1, K: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := k.Run(nil, nil, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("run of a closed kernel: got %v, want %v", err, ErrClosed)
	}
	if _, err := e.MatMul(engine.MatMulProblem{M: 1, N: 1, K: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("matmul of a closed engine: got %v, want %v", err, ErrClosed)
	}
	if _, err := New(0); err == nil {
		t.Error("an engine of no threads was made")
	}
}

// TestStatus shows that an error names the problem, the call and the meaning.
func TestStatus(t *testing.T) {
	err := checkStatus("forward of this", 3, "choosing a forward convolution")
	if want := "dnnl: forward of this: choosing a forward convolution: not implemented for this problem"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func BenchmarkEngine(b *testing.B) {
	enginetest.Bench(b, func(threads int) engine.Engine {
		e, err := New(threads)
		if err != nil {
			b.Fatal(err)
		}
		return e
	})
}

// TestRunAllocatesNothing: no Go memory per run.
func TestRunAllocatesNothing(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e, err := New(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range enginetest.Counted() {
		for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			k, err := e.Conv(op, c.ConvProblem)
			if err != nil {
				t.Fatal(err)
			}
			if n := enginetest.Allocs(k, op, c.ConvProblem); n != 0 {
				t.Errorf("%v, %s: %v allocations a run, want 0", op, c.Name, n)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestPieces: a product in float32 is cut among the threads of the team, and one too
// small to be worth it is not.
func TestPieces(t *testing.T) {
	e, err := New(3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		p    engine.MatMulProblem
		want int
	}{{engine.MatMulProblem{M: 100, N: 400, K: 560}, 3}, {engine.MatMulProblem{M: 400, N: 5, K: 560, TransA: true}, 3}, {engine.MatMulProblem{M: 20, N: 20, K: 20}, 1}} {
		k, err := e.MatMul(c.p)
		if err != nil {
			t.Fatal(err)
		}
		got := 1
		if p, ok := k.(*pieces); ok {
			got = len(p.list)
		}
		if got != c.want {
			t.Errorf("%v: %d pieces, want %d", k, got, c.want)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if err := k.Run(nil, nil, nil, nil); err == nil {
			t.Errorf("%v: a closed kernel ran", c.p)
		}
	}
}
