package enginetest

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// Layers are shapes of real networks: the 32×32 convolutional nets of BiDVL
// (width 64, batch 16) and the residual nets for 128×128 images (batch 1).
func Layers() []ConvCase {
	return []ConvCase{
		square("conv32 k3 3→64 32²", 16, 3, 32, 32, 64, 3, 1, 1),
		square("conv32 k4s2 64→64 32²", 16, 64, 32, 32, 64, 4, 2, 1),
		square("conv32 k3 64→128 16²", 16, 64, 16, 16, 128, 3, 1, 1),
		square("conv32 k4s2 128→128 16²", 16, 128, 16, 16, 128, 4, 2, 1),
		square("conv32 k3 128→256 8²", 16, 128, 8, 8, 256, 3, 1, 1),
		square("conv32 k4s2 256→256 8²", 16, 256, 8, 8, 256, 4, 2, 1),
		square("conv32 k3 256→512 4²", 16, 256, 4, 4, 512, 3, 1, 1),
		square("conv32 head 512→512 4²", 16, 512, 4, 4, 512, 4, 1, 0),
		square("conv32 k1 512→512 1²", 16, 512, 1, 1, 512, 1, 1, 0),
		square("conv32 G k3 3→96 32²", 16, 3, 32, 32, 96, 3, 1, 1),
		square("conv32 G k4s2 96→192 32²", 16, 96, 32, 32, 192, 4, 2, 1),
		square("conv32 G k4s2 192→384 16²", 16, 192, 16, 16, 384, 4, 2, 1),
		square("conv32 G k4s2 384→768 8²", 16, 384, 8, 8, 768, 4, 2, 1),
		square("narrow k3 16→16 32²", 16, 16, 32, 32, 16, 3, 1, 1),
		square("narrow k3 16→32 16²", 16, 16, 16, 16, 32, 3, 1, 1),
		square("narrow k3 32→32 16²", 16, 32, 16, 16, 32, 3, 1, 1),
		square("narrow k4s2 16→32 16²", 16, 16, 16, 16, 32, 4, 2, 1),
		square("narrow k4s2 32→64 16²", 16, 32, 16, 16, 64, 4, 2, 1),
		square("resnet128 k3 64→64 128²", 1, 64, 128, 128, 64, 3, 1, 1),
		square("resnet128 k3 128→256 32²", 1, 128, 32, 32, 256, 3, 1, 1),
		square("resnet128 k3 512→512 16²", 1, 512, 16, 16, 512, 3, 1, 1),
		square("resnet128 k1 256→512 16²", 1, 256, 16, 16, 512, 1, 1, 0),
		square("resnet128 k3 1024→1024 4²", 1, 1024, 4, 4, 1024, 3, 1, 1),
	}
}

// Products are a square matrix product, and those of a step of BiDSM on Frey faces:
// batch 100, 560 visible and 400 hidden units.
func Products() []engine.MatMulProblem {
	return []engine.MatMulProblem{
		{M: 1024, N: 1024, K: 1024},
		{M: 100, N: 400, K: 560},
		{M: 100, N: 400, K: 560, TransB: true},
		{M: 100, N: 560, K: 400},
		{M: 100, N: 560, K: 400, TransB: true},
		{M: 400, N: 560, K: 100, TransA: true},
		{M: 560, N: 400, K: 100, TransA: true},
		{M: 560, N: 400, K: 600, TransA: true},
	}
}

// Bench times all ops of Layers, and all Products, with 1 and 2
// threads. It reports the GFLOP/s of the median run and of the best one, a
// multiply-add counted as two. With one thread, time is the thread's own time on
// a CPU, so that other work on the machine disturbs little; with two, it is wall
// time.
func Bench(b *testing.B, make func(threads int) engine.Engine) { benchAll(b, false, make) }

// BenchBF16 is Bench, multiplying as bfloat16.
func BenchBF16(b *testing.B, make func(threads int) engine.Engine) { benchAll(b, true, make) }

func benchAll(b *testing.B, bf16 bool, make func(threads int) engine.Engine) {
	for threads := 1; threads <= 2; threads++ {
		for _, l := range Layers() {
			l.BF16 = bf16
			for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
				b.Run(fmt.Sprintf("layer=%s/op=%v/threads=%d", l.Name, op, threads), func(b *testing.B) {
					bench(b, make, threads, convReference(op, l.ConvProblem), l.Flops(), func(e engine.Engine) (engine.Kernel, error) {
						return e.Conv(op, l.ConvProblem)
					})
				})
			}
		}
		for _, p := range Products() {
			p.BF16 = bf16
			b.Run(fmt.Sprintf("layer=matmul %v/op=forward/threads=%d", p, threads), func(b *testing.B) {
				bench(b, make, threads, matMulReference(p), p.Flops(), func(e engine.Engine) (engine.Kernel, error) {
					return e.MatMul(p)
				})
			})
		}
	}
}

func bench(b *testing.B, make func(threads int) engine.Engine, threads int, r reference, flops int64, prepare func(engine.Engine) (engine.Kernel, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := make(threads)
	k, err := prepare(e)
	if err != nil {
		b.Fatal(err)
	}
	dst, x, y, scratch := newBuffer(r.dst, 0), newBuffer(r.a, 0), newBuffer(r.b, 0), newBuffer((k.Scratch()+3)/4, 0)
	copy(x.data(), random(1, r.a))
	copy(y.data(), random(2, r.b))
	clear(dst.data())     // touch the pages
	clear(scratch.data()) // before timing
	b.SetBytes(4 * int64(r.dst+r.a+r.b))
	var took []time.Duration
	for b.Loop() {
		start := now(threads)
		if err := k.Run(dst.pointer(), x.pointer(), y.pointer(), scratch.pointer()); err != nil {
			b.Fatal(err)
		}
		took = append(took, now(threads)-start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(flops)/took[len(took)/2].Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(float64(flops)/took[0].Seconds()/1e9, "best-GFLOP/s")
	if err := k.Close(); err != nil {
		b.Fatal(err)
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
	}
}

// now is a clock for kernels of so many threads.
func now(threads int) time.Duration {
	clock := int32(unix.CLOCK_THREAD_CPUTIME_ID)
	if threads > 1 {
		clock = unix.CLOCK_MONOTONIC
	}
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // these clocks always exist on Linux
	}
	return time.Duration(t.Nano())
}
