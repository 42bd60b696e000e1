package native

import (
	"errors"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/micro"
)

// TestConformance holds every micro-kernel that this CPU can run to the suite.
func TestConformance(t *testing.T) {
	for _, mk := range micro.All() {
		t.Run(mk.Name, func(t *testing.T) {
			enginetest.Run(t, func(threads int) engine.Engine { return newEngine(threads, mk) })
		})
	}
}

func BenchmarkEngine(b *testing.B) {
	enginetest.Bench(b, func(threads int) engine.Engine { return New(threads) })
}

func TestClosed(t *testing.T) {
	e := New(2)
	mm := engine.MatMulProblem{M: 1, N: 1, K: 1}
	k, err := e.MatMul(mm)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := k.Run(nil, nil, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("run of a closed kernel: got %v, want %v", err, ErrClosed)
	}
	if _, err := e.MatMul(mm); !errors.Is(err, ErrClosed) {
		t.Errorf("matmul of a closed engine: got %v, want %v", err, ErrClosed)
	}
}

// TestBF16Refused: a problem in bfloat16 is never computed in float32 instead.
func TestBF16Refused(t *testing.T) {
	e := New(1)
	c := enginetest.Convs()[0].ConvProblem
	c.BF16 = true
	_, conv := e.Conv(engine.Forward, c)
	_, matmul := e.MatMul(engine.MatMulProblem{M: 2, N: 2, K: 2, BF16: true})
	for name, err := range map[string]error{"engine": e.BF16(), "convolution": conv, "product": matmul} {
		if !errors.Is(err, ErrNoBF16) {
			t.Errorf("%s: got %v, want %v", name, err, ErrNoBF16)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestRunAllocatesNothing, on one and on two threads.
func TestRunAllocatesNothing(t *testing.T) {
	for threads := 1; threads <= 2; threads++ {
		e := New(threads)
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

// BenchmarkKernel is each micro-kernel alone: depthBlock deep, operands in the first
// cache.
func BenchmarkKernel(b *testing.B) {
	for _, t := range micro.All() {
		b.Run("kernel="+t.Name, func(b *testing.B) {
			a, panel, c := micro.Aligned(t.MR*rowStride), micro.Aligned(depthBlock*t.NR), micro.Aligned(t.MR*t.NR)
			var off [micro.MaxMR]int
			for r := range t.MR {
				off[r] = r * t.NR
			}
			for b.Loop() {
				t.Run(depthBlock, a, rowStride, 1, panel, c, &off, t.MR, t.NR, false)
			}
			b.ReportMetric(float64(2*t.MR*t.NR*depthBlock)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
