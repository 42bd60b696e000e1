package loops

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/engine"
)

// Engine is an engine.Engine of one thread made of the plain loops: slow, and
// useful to check others against.
type Engine struct{}

func (Engine) Name() string { return "plain loops" }
func (Engine) Close() error { return nil }

// Conv prepares one of the ops of a convolution.
func (Engine) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	x, w, y := p.N*p.H*p.W*p.C, p.O*p.C/p.Groups*p.KH*p.KW, p.N*p.OH*p.OW*p.O
	switch op {
	case engine.Forward:
		return kernel{y, x, w, func(d, a, b []float32) { Conv(p, d, a, b, 0, 1) }}, nil
	case engine.GradX:
		return kernel{x, w, y, func(d, a, b []float32) { ConvGradX(p, d, a, b, 0, 1) }}, nil
	}
	return kernel{w, x, y, func(d, a, b []float32) { ConvGradW(p, d, a, b, 0, 1) }}, nil
}

// MatMul prepares a matrix product.
func (Engine) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	return kernel{p.M * p.N, p.M * p.K, p.K * p.N, func(d, a, b []float32) { MatMul(p, d, a, b, 0, 1) }}, nil
}

type kernel struct {
	dst, a, b int // lengths
	f         func(dst, a, b []float32)
}

func (kernel) Scratch() int { return 0 }
func (kernel) Close() error { return nil }

func (k kernel) Run(dst, a, b, _ unsafe.Pointer) error {
	k.f(unsafe.Slice((*float32)(dst), k.dst), unsafe.Slice((*float32)(a), k.a), unsafe.Slice((*float32)(b), k.b))
	return nil
}
