package enginetest

import (
	"fmt"
	"testing"
	"weak"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads/threadstest"
)

// runForgets: an engine keeps nothing alive of the memory that kernels ran on which are
// closed, though threads, and what is theirs, live on.
func (s *suite) runForgets(t *testing.T) {
	c := s.conv(square("", 3, 16, 8, 8, 32, 3, 1, 1).ConvProblem)
	for _, op := range []engine.ConvOp{engine.Forward, engine.GradX, engine.GradW} {
		t.Run(fmt.Sprintf("forget/%v", op), func(t *testing.T) {
			s.forgets(t, convReference(op, c), func(e engine.Engine) (engine.Kernel, error) { return e.Conv(op, c) })
		})
	}
	p := s.matMul(engine.MatMulProblem{M: 128, N: 128, K: 128})
	t.Run("forget/matmul", func(t *testing.T) {
		s.forgets(t, matMulReference(p), func(e engine.Engine) (engine.Kernel, error) { return e.MatMul(p) })
	})
}

func (s *suite) forgets(t *testing.T, r reference, prepare func(engine.Engine) (engine.Kernel, error)) {
	for i, e := range s.engines {
		var left map[string]weak.Pointer[float32]
		if err := s.do(func() (err error) { left, err = runAndClose(e, r, prepare); return err }); err != nil {
			t.Fatal(err)
		}
		for name, p := range left {
			if !threadstest.Forgotten(p) {
				t.Errorf("%d threads: %s is still reachable", i+1, name)
			}
		}
	}
}

// runAndClose is the buffers of a kernel that ran once and is closed.
func runAndClose(e engine.Engine, r reference, prepare func(engine.Engine) (engine.Kernel, error)) (map[string]weak.Pointer[float32], error) {
	k, err := prepare(e)
	if err != nil {
		return nil, err
	}
	dst, a, b, scratch := newBuffer(r.dst, 0), newBuffer(r.a, 0), newBuffer(r.b, 0), newBuffer((k.Scratch()+3)/4, 0)
	if err := k.Run(dst.pointer(), a.pointer(), b.pointer(), scratch.pointer()); err != nil {
		return nil, err
	}
	left := map[string]weak.Pointer[float32]{}
	for name, buf := range map[string]buffer{"dst": dst, "a": a, "b": b, "scratch": scratch} {
		left[name] = weak.Make(&buf.all[0])
	}
	return left, k.Close()
}
