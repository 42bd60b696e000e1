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

// problem is what a step asks of the engine.
type problem interface {
	Flops() int64
	// fitsBF16 says whether bfloat16 is good enough where it is allowed.
	fitsBF16() bool
	// prepare makes the engine's kernel for float32, perhaps by bfloat16.
	prepare(e engine.Engine, bf16 bool) (engine.Kernel, error)
	// loop computes part w of n in float64.
	loop(dst, a, b []float64, w, n int)
}

// problemOf is the problem of a step, nil if it is none for an engine.
func problemOf(p *plan.Plan, s *plan.Step) problem {
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
		return &matMulProblem{engine.MatMulProblem{M: z.At(0), N: z.At(1), K: k, TransA: op.TransX, TransB: op.TransY}}
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

func (p *convProblem) prepare(e engine.Engine, bf16 bool) (engine.Kernel, error) {
	p.BF16 = bf16 && p.fitsBF16()
	return e.Conv(p.op, p.ConvProblem)
}

func (p *convProblem) loop(dst, a, b []float64, w, n int) {
	switch p.op {
	case engine.Forward:
		loops.Conv(p.ConvProblem, dst, a, b, w, n)
	case engine.GradX:
		loops.ConvGradX(p.ConvProblem, dst, a, b, w, n)
	default:
		loops.ConvGradW(p.ConvProblem, dst, a, b, w, n)
	}
}

type matMulProblem struct{ engine.MatMulProblem }

func (p *matMulProblem) prepare(e engine.Engine, bf16 bool) (engine.Kernel, error) {
	p.BF16 = bf16 && p.fitsBF16()
	return e.MatMul(p.MatMulProblem)
}

func (p *matMulProblem) loop(dst, a, b []float64, w, n int) {
	loops.MatMul(p.MatMulProblem, dst, a, b, w, n)
}

// loop64 is a convolution or product in float64, by plain loops.
type loop64 struct {
	jobs      *threads.Jobs
	prob      problem
	dst, a, b []float64
}

func newLoop64(jobs *threads.Jobs, prob problem, dst, a, b array.Place) (kernel, error) {
	if dst.DType != graph.F64 {
		return nil, fmt.Errorf("no kernel for %v", dst.DType)
	}
	s := func(x array.Place) []float64 { return array.Elems[float64](x) }
	return &loop64{jobs, prob, s(dst), s(a), s(b)}, nil
}

func (l *loop64) Run() error {
	l.jobs.Run(l, int(min(l.prob.Flops(), 1<<40)))
	return nil
}

func (l *loop64) Part(_, w, n int) { l.prob.loop(l.dst, l.a, l.b, w, n) }
