package cpu

import (
	"fmt"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/loops"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// engineStep runs a kernel of the engine.
type engineStep struct {
	k               engine.Kernel
	dst, a, b, work unsafe.Pointer
}

func (e *engineStep) Run() error { return e.k.Run(e.dst, e.a, e.b, e.work) }

// problem is what a step asks of the engine, nil if it is no such step.
func problem(p *plan.Plan, s *plan.Step) any {
	dims := func(v int) graph.Shape { return p.Values[v].Dims }
	switch op := s.Op.(type) {
	case graph.Conv2D:
		return conv(engine.Forward, op.Conv, dims(s.In[0]), dims(s.Out[0]))
	case graph.Conv2DGradX:
		return conv(engine.GradX, op.Conv, dims(s.Out[0]), dims(s.In[1]))
	case graph.Conv2DGradW:
		return conv(engine.GradW, op.Conv, dims(s.In[0]), dims(s.In[1]))
	case graph.MatMul:
		x, z := dims(s.In[0]), dims(s.Out[0])
		k := x.At(1)
		if op.TransX {
			k = x.At(0)
		}
		return &engine.MatMulProblem{M: z.At(0), N: z.At(1), K: k, TransA: op.TransX, TransB: op.TransY}
	}
	return nil
}

type convProblem struct {
	op engine.ConvOp
	engine.ConvProblem
}

func conv(op engine.ConvOp, c graph.Conv, x, y graph.Shape) *convProblem {
	return &convProblem{op, engine.ConvProblem{Conv: c, N: x.At(0), H: x.At(1), W: x.At(2), C: x.At(3), OH: y.At(1), OW: y.At(2), O: y.At(3)}}
}

func flops(prob any) int64 {
	switch p := prob.(type) {
	case *convProblem:
		return p.Flops()
	case *engine.MatMulProblem:
		return p.Flops()
	}
	return 0
}

// prepare makes the engine's kernel for a float32 problem.
func prepare(e engine.Engine, prob any) (engine.Kernel, error) {
	if p, ok := prob.(*convProblem); ok {
		return e.Conv(p.op, p.ConvProblem)
	}
	return e.MatMul(*prob.(*engine.MatMulProblem))
}

// loop64 is a convolution or product in float64, by plain loops.
type loop64 struct {
	jobs      *threads.Jobs
	prob      any
	dst, a, b []float64
}

func newLoop64(p *threads.Jobs, prob any, dst, a, b array.Place) (kernel, error) {
	if dst.DType != graph.F64 {
		return nil, fmt.Errorf("no kernel for %v", dst.DType)
	}
	s := func(x array.Place) []float64 { return array.Elems[float64](x) }
	return &loop64{p, prob, s(dst), s(a), s(b)}, nil
}

func (l *loop64) Run() error {
	l.jobs.Run(l, int(min(flops(l.prob), 1<<40)))
	return nil
}

func (l *loop64) Part(_, w, n int) {
	if p, ok := l.prob.(*engine.MatMulProblem); ok {
		loops.MatMul(*p, l.dst, l.a, l.b, w, n)
		return
	}
	switch p := l.prob.(*convProblem); p.op {
	case engine.Forward:
		loops.Conv(p.ConvProblem, l.dst, l.a, l.b, w, n)
	case engine.GradX:
		loops.ConvGradX(p.ConvProblem, l.dst, l.a, l.b, w, n)
	default:
		loops.ConvGradW(p.ConvProblem, l.dst, l.a, l.b, w, n)
	}
}
