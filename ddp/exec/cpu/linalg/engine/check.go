package engine

import (
	"fmt"

	"ebtrain/ddp/graph"
)

func (op ConvOp) String() string {
	switch op {
	case Forward:
		return "forward"
	case GradX:
		return "grad_x"
	case GradW:
		return "grad_w"
	}
	return fmt.Sprintf("ConvOp(%d)", uint8(op))
}

func (p ConvProblem) String() string {
	return fmt.Sprintf("%dx%dx%dx%d to %dx%dx%dx%d by %v (images N x H x W x C)", p.N, p.H, p.W, p.C, p.N, p.OH, p.OW, p.O, p.Conv) + inType(p.BF16)
}

// Check is nil if op and the geometry make sense together. Engines call it
// before they trust the sizes of buffers to p.
func (p ConvProblem) Check(op ConvOp) error {
	if op < Forward || op > GradW {
		return fmt.Errorf("convolution %v: want Forward, GradX or GradW, got %v", p, op)
	}
	if p.N < 1 || p.C < 1 || p.H < 1 || p.W < 1 || p.O < 1 || p.OH < 1 || p.OW < 1 || p.Groups < 1 {
		return fmt.Errorf("convolution %v: want every extent to be at least 1", p)
	}
	if p.C%p.Groups != 0 || p.O%p.Groups != 0 {
		return fmt.Errorf("convolution %v: %d groups do not divide %d and %d channels", p, p.Groups, p.C, p.O)
	}
	w := graph.T(graph.F32, p.O, p.C/p.Groups, p.KH, p.KW)
	x := graph.T(graph.F32, p.N, p.C, p.H, p.W)
	out, err := graph.Conv2D{Conv: p.Conv}.Infer([]graph.Type{x, w})
	if err != nil {
		return fmt.Errorf("convolution %v: %w", p, err)
	}
	if y := graph.D(p.N, p.O, p.OH, p.OW); out[0].Shape != y {
		return fmt.Errorf("convolution %v: the output is %v, want %v", p, y, out[0].Shape)
	}
	return nil
}

func (p MatMulProblem) String() string {
	t := func(b bool) string {
		if b {
			return "ᵀ"
		}
		return ""
	}
	return fmt.Sprintf("matrix product (%d,%d)=A%s(%d,%d)·B%s(%d,%d)", p.M, p.N, t(p.TransA), p.M, p.K, t(p.TransB), p.K, p.N) + inType(p.BF16)
}

// inType is the end of a problem's name.
func inType(bf16 bool) string {
	if bf16 {
		return " in bfloat16"
	}
	return ""
}

// Check is nil if every extent is at least 1.
func (p MatMulProblem) Check() error {
	if p.M < 1 || p.N < 1 || p.K < 1 {
		return fmt.Errorf("%v: want every extent to be at least 1", p)
	}
	return nil
}
