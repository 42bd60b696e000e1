// Package enginetest is the conformance suite of engines: every kernel against
// slow loops in float64, over many geometries and thread counts.
//
// Each case checks that the result is right to float32 rounding, that it does
// not depend on what dst and scratch held before, that nothing is written
// outside dst and scratch and nothing outside the inputs has an influence, that
// inputs stay as they were, and that a second run, a second kernel and other
// addresses give the same bits.
package enginetest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"ebtrain/ddp/exec/cpu/engine"
)

// Run holds the engines that make returns to the contract of package engine.
// make is called with 1, 2 and 3 threads; it may call t.Fatal.
// All calls on an engine, and make itself, happen on one locked OS thread.
func Run(t *testing.T, make func(threads int) engine.Engine) {
	for _, threads := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("threads=%d", threads), func(t *testing.T) {
			th := newThread()
			defer th.stop()
			var e engine.Engine
			if th.do(func() error { e = make(threads); return nil }); e == nil {
				t.Fatal("no engine")
			}
			if e.Name() == "" {
				t.Error("the engine has no name")
			}
			runConv(t, th, e)
			runMatMul(t, th, e)
			runRefusals(t, th, e)
			for range 2 { // Close is idempotent
				if err := th.do(e.Close); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
	}
}

func runConv(t *testing.T, th *thread, e engine.Engine) {
	for _, c := range Convs() {
		for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			t.Run(fmt.Sprintf("conv/%v/%s", op, c.Name), func(t *testing.T) {
				err := th.do(func() error {
					return checkKernel(func() (engine.Kernel, error) { return e.Conv(op, c.ConvProblem) }, convReference(op, c.ConvProblem))
				})
				if err != nil {
					t.Errorf("%v: %v", c.ConvProblem, err)
				}
			})
		}
	}
}

func runMatMul(t *testing.T, th *thread, e engine.Engine) {
	for _, p := range MatMuls() {
		t.Run(fmt.Sprintf("matmul/%dx%dx%d,%t,%t", p.M, p.N, p.K, p.TransA, p.TransB), func(t *testing.T) {
			err := th.do(func() error {
				return checkKernel(func() (engine.Kernel, error) { return e.MatMul(p) }, matMulReference(p))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func runRefusals(t *testing.T, th *thread, e engine.Engine) {
	good := square("", 1, 4, 5, 5, 6, 3, 1, 1).ConvProblem
	for name, spoil := range map[string]func(p *engine.ConvProblem){
		"no images":          func(p *engine.ConvProblem) { p.N = 0 },
		"wrong output":       func(p *engine.ConvProblem) { p.OW++ },
		"groups that do not": func(p *engine.ConvProblem) { p.Groups = 3 },
		"window too big":     func(p *engine.ConvProblem) { p.KH = 9 },
		"no stride":          func(p *engine.ConvProblem) { p.StrideH = 0 },
	} {
		t.Run("refuse/"+name, func(t *testing.T) {
			p := good
			spoil(&p)
			if err := th.do(func() error { _, err := e.Conv(engine.Forward, p); return err }); err == nil {
				t.Errorf("%v was accepted", p)
			}
		})
	}
	if err := th.do(func() error { _, err := e.Conv(0, good); return err }); err == nil {
		t.Error("an op that is none of the three was accepted")
	}
	for _, p := range []engine.MatMulProblem{{M: 0, N: 1, K: 1}, {M: 1, N: -1, K: 1}, {M: 1, N: 1}} {
		if err := th.do(func() error { _, err := e.MatMul(p); return err }); err == nil {
			t.Errorf("%v was accepted", p)
		}
	}
}

// thread is one locked OS thread that runs functions in turn.
type thread struct {
	work chan func() error
	done chan error
}

func newThread() *thread {
	th := &thread{make(chan func() error), make(chan error)}
	go func() {
		runtime.LockOSThread()
		defer close(th.done) // also after t.Fatal
		for f := range th.work {
			th.done <- f()
		}
	}()
	return th
}

func (th *thread) do(f func() error) error {
	th.work <- f
	err, ok := <-th.done
	if !ok {
		return errors.New("the thread ended")
	}
	return err
}

func (th *thread) stop() {
	close(th.work)
	<-th.done
}
