// Package enginetest is the conformance suite of engines: every kernel against
// slow loops in float64, over many geometries and thread counts.
//
// Each case checks that the result is right to float32 rounding, that it does
// not depend on what dst and scratch held before (they are poisoned before each
// run, with other garbage each time), that nothing is written
// outside dst and scratch and nothing outside the inputs has an influence, that
// inputs stay as they were, and that a second run, a second kernel and other
// addresses give the same bits. What closed kernels worked on must not stay reachable.
package enginetest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// Run holds the engines that make returns to the contract of package engine.
// make is called with 1, 2 and 3 threads; it may call t.Fatal. All calls on the
// engines, and make itself, happen on one locked OS thread.
func Run(t *testing.T, make func(threads int) engine.Engine) { run(t, suite{}, make) }

// RunTiled is Run for an engine that computes results in tiles: the error of a
// result is as big as the biggest in its tile, also at the edge of an image,
// where few terms are summed, and rounding what a tile transforms comes on top
// (mixedRoundings).
func RunTiled(t *testing.T, make func(threads int) engine.Engine) { run(t, suite{tiled: true}, make) }

// RunBF16 is Run on problems that may multiply as bfloat16. Results must be right
// to float32 rounding, of the operands or of the operands rounded.
func RunBF16(t *testing.T, make func(threads int) engine.Engine) { run(t, suite{bf16: true}, make) }

// RunTiledBF16 is RunTiled on problems that may multiply as bfloat16. Results must be
// as exact as those of operands rounded to bfloat16: in root mean square, and
// none may be further off than any of those could be.
func RunTiledBF16(t *testing.T, make func(threads int) engine.Engine) {
	run(t, suite{bf16: true, tiled: true}, make)
}

// RunWideBF16 is RunBF16 with channels on both sides, and what they are in matrix products,
// rounded up to multiples of a step, and one group: for an engine that takes nothing
// else.
func RunWideBF16(t *testing.T, step int, make func(threads int) engine.Engine) {
	run(t, suite{bf16: true, step: step}, make)
}

func run(t *testing.T, s suite, make func(threads int) engine.Engine) {
	s.thread = newThread()
	defer s.stop()
	for threads := 1; threads <= 3; threads++ {
		if s.do(func() error { s.engines = append(s.engines, make(threads)); return nil }) != nil {
			t.Fatal("no engine")
		}
	}
	s.runConv(t)
	s.runSmall(t)
	s.runMatMul(t)
	s.runForgets(t)
	for _, e := range s.engines {
		if e.Name() == "" {
			t.Error("the engine has no name")
		}
		s.runRefusals(t, e)
		for range 2 { // Close is idempotent
			if err := s.do(e.Close); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
}

// suite is the engines under test, one for each number of threads from 1.
type suite struct {
	*thread
	engines []engine.Engine
	bf16    bool
	tiled   bool
	step    int // what channels are multiples of, if not 0
}

// conv is a problem as the suite asks it.
func (s *suite) conv(p engine.ConvProblem) engine.ConvProblem {
	p.BF16 = s.bf16
	if s.step > 0 {
		p.C, p.O, p.Groups = s.whole(p.C), s.whole(p.O), 1
	}
	return p
}

// matMul is a problem as the suite asks it. A product of 1×1 windows has as many columns
// as channels, and those of its second operand are its depth, or of a transposed first
// one its rows.
func (s *suite) matMul(p engine.MatMulProblem) engine.MatMulProblem {
	p.BF16 = s.bf16
	if s.step > 0 {
		p.N = s.whole(p.N)
		if p.TransA {
			p.M = s.whole(p.M)
		} else {
			p.K = s.whole(p.K)
		}
	}
	return p
}

// wideFlops is the most work of a case with more channels than it had.
const wideFlops = 12e6

func (s *suite) whole(n int) int { return (n + s.step - 1) / s.step * s.step }

// check holds the kernels that prepare makes on every engine to r.
func (s *suite) check(t *testing.T, r reference, prepare func(engine.Engine) (engine.Kernel, error)) {
	x := s.expectation(r)
	for i := range s.engines {
		s.checkOn(t, i, x, "", prepare)
	}
}

// checkOn holds the kernels that prepare makes on one engine to x.
func (s *suite) checkOn(t *testing.T, i int, x expectation, what string, prepare func(engine.Engine) (engine.Kernel, error)) {
	e := s.engines[i]
	if err := s.do(func() error { return x.check(func() (engine.Kernel, error) { return prepare(e) }) }); err != nil {
		t.Errorf("%s%d threads: %v", what, i+1, err)
	}
}

func (s *suite) expectation(r reference) expectation {
	x := newExpectation(r, s.bf16)
	if s.tiled {
		x.level(r)
	}
	return x
}

// brief says that the cases are to take little time.
func brief() bool { return testing.Short() || race }

func (s *suite) runConv(t *testing.T) {
	for i, c := range Convs() {
		c.ConvProblem = s.conv(c.ConvProblem)
		if brief() && c.Flops() > shortFlops || s.step > 0 && c.Flops() > wideFlops {
			continue
		}
		for k, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
			t.Run(fmt.Sprintf("conv/%v/%s", op, c.Name), func(t *testing.T) {
				prepare := func(e engine.Engine) (engine.Kernel, error) { return e.Conv(op, c.ConvProblem) }
				s.check(t, convReference(op, c.ConvProblem), prepare)
				if i%3 == k { // of the three ops one in turn
					s.spoilt(t, convReference(op, c.ConvProblem), prepare)
				}
			})
		}
	}
}

func (s *suite) runMatMul(t *testing.T) {
	for _, p := range MatMuls() {
		if race && p.Flops() > 7e5 {
			continue // of the others some are shared among threads, too
		}
		p = s.matMul(p)
		t.Run(fmt.Sprintf("matmul/%dx%dx%d,%t,%t", p.M, p.N, p.K, p.TransA, p.TransB), func(t *testing.T) {
			s.check(t, matMulReference(p), func(e engine.Engine) (engine.Kernel, error) { return e.MatMul(p) })
		})
	}
}

func (s *suite) runRefusals(t *testing.T, e engine.Engine) {
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
			if err := s.do(func() error { _, err := e.Conv(engine.Forward, p); return err }); err == nil {
				t.Errorf("%v was accepted", p)
			}
		})
	}
	if err := s.do(func() error { _, err := e.Conv(0, good); return err }); err == nil {
		t.Error("an op that is none of the three was accepted")
	}
	for _, p := range []engine.MatMulProblem{{M: 0, N: 1, K: 1}, {M: 1, N: -1, K: 1}, {M: 1, N: 1}} {
		if err := s.do(func() error { _, err := e.MatMul(p); return err }); err == nil {
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
	for range th.done { // until it has ended
	}
}
