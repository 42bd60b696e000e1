package cuda

import (
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// problemOf is what a step asks of a library; nil where it asks nothing, or an operand
// is empty, which no library takes.
func problemOf(p *plan.Plan, s *plan.Step, m linalg.Math) linalg.Problem {
	dims := func(v int) graph.Shape { return p.Values[v].Dims }
	var q linalg.Problem
	switch op := s.Op.(type) {
	case graph.Conv2D:
		q = conv(linalg.Forward, op.Conv, dims(s.In[0]), dims(s.Out[0]))
	case graph.Conv2DGradX:
		q = conv(linalg.GradX, op.Conv, dims(s.Out[0]), dims(s.In[1]))
	case graph.Conv2DGradW:
		q = conv(linalg.GradW, op.Conv, dims(s.In[0]), dims(s.In[1]))
	case graph.MatMul:
		x, z := dims(s.In[0]), dims(s.Out[0])
		k := x.At(1)
		if op.TransX {
			k = x.At(0)
		}
		q = linalg.Product{Batch: 1, M: z.At(0), N: z.At(1), K: k, TransA: op.TransX, TransB: op.TransY}
	default:
		return nil
	}
	for _, vs := range [...][]int{s.In, s.Out} {
		for _, v := range vs {
			if dims(v).Len() == 0 {
				return nil
			}
		}
	}
	dtype := func(v int) graph.DType { return p.Values[v].DType }
	t := linalg.Types{Dst: dtype(s.Out[0]), A: dtype(s.In[0]), B: dtype(s.In[1]), Math: m}
	if t.A == graph.F64 {
		t.Math = linalg.Full
	}
	return q.With(t)
}

// conv is a convolution of images x to images y, both channels-last.
func conv(op linalg.ConvOp, c graph.Conv, x, y graph.Shape) linalg.Problem {
	return linalg.Conv{Op: op, Conv: c, N: x.At(0), H: x.At(1), W: x.At(2), C: x.At(3), OH: y.At(1), OW: y.At(2), O: y.At(3)}
}

// flops are the operations of a step, a multiply-add counted as two; 0 where it makes
// no sense.
func flops(p *plan.Plan, s *plan.Step) int64 {
	if q := problemOf(p, s, linalg.Full); q != nil {
		return q.Flops()
	}
	return 0
}
