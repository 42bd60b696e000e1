package cpu

import (
	"errors"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/loops"
)

// loopEngine is an engine of one thread made of the plain loops.
type loopEngine struct{}

func (loopEngine) Name() string { return "plain loops" }
func (loopEngine) Close() error { return nil }
func (loopEngine) BF16() error  { return errors.New("plain loops multiply float32 only") }

// Conv prepares one of the ops of a convolution.
func (loopEngine) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	x, w, y := p.N*p.H*p.W*p.C, p.O*p.C/p.Groups*p.KH*p.KW, p.N*p.OH*p.OW*p.O
	switch op {
	case engine.Forward:
		return loopKernel{y, x, w, func(d, a, b []float32) { loops.Conv(p, d, a, b, 0, 1) }}, nil
	case engine.GradX:
		return loopKernel{x, w, y, func(d, a, b []float32) { loops.ConvGradX(p, d, a, b, 0, 1) }}, nil
	}
	return loopKernel{w, x, y, func(d, a, b []float32) { loops.ConvGradW(p, d, a, b, 0, 1) }}, nil
}

// MatMul prepares a matrix product.
func (loopEngine) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	return loopKernel{p.M * p.N, p.M * p.K, p.K * p.N, func(d, a, b []float32) { loops.MatMul(p, d, a, b, 0, 1) }}, nil
}

type loopKernel struct {
	dst, a, b int // lengths
	f         func(dst, a, b []float32)
}

func (loopKernel) Scratch() int { return 0 }
func (loopKernel) Close() error { return nil }

func (k loopKernel) Run(dst, a, b, _ unsafe.Pointer) error {
	k.f(unsafe.Slice((*float32)(dst), k.dst), unsafe.Slice((*float32)(a), k.a), unsafe.Slice((*float32)(b), k.b))
	return nil
}
