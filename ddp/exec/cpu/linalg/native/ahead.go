package native

import (
	"errors"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// ahead puts this engine in front of another for what it was seen to be faster at than
// oneDNN.
type ahead struct {
	engine.Engine
	own *Engine
}

const (
	// few is up to how many channels on either side oneDNN, which takes 16 at a time, leaves
	// vectors empty that this engine fills.
	few = 8
	// fewFilters is up to how many filters it is still the slower one, but for gradients of
	// weights, for any number of them.
	fewFilters = 32
	// big is the number of multiply-adds from which on oneDNN's products may be the faster
	// ones.
	big = 1 << 27
)

// Ahead is an engine on a team that does convolutions of few channels itself, and all but
// big products, in float32, and leaves the rest to another, which it closes in the end.
// Without AVX-512 it is the other.
func Ahead(team *threads.Team, rest engine.Engine) engine.Engine {
	own := On(team)
	if !own.kernel.Masks {
		return rest
	}
	return &ahead{rest, own}
}

// Conv prepares one op of a convolution. Which engine does it depends on the geometry
// alone.
func (e *ahead) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	if p.BF16 || p.Check(op) != nil || e.own.pool == nil || !faster(e.own, op, p) {
		return e.Engine.Conv(op, p)
	}
	return e.own.Conv(op, p)
}

// MatMul prepares a matrix product.
func (e *ahead) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	if p.BF16 || p.Check() != nil || e.own.pool == nil || p.Flops()/2 >= big {
		return e.Engine.MatMul(p)
	}
	return e.own.MatMul(p)
}

// Close closes both engines.
func (e *ahead) Close() error {
	return errors.Join(e.own.Close(), e.Engine.Close())
}

// faster says that a convolution has few channels, and is read where it lies. (At strides
// above 1 neither is always the faster one.)
func faster(e *Engine, op engine.ConvOp, p engine.ConvProblem) bool {
	switch {
	case isHead(p) || min(p.C, p.O) > few || p.StrideH*p.StrideW > 1:
		return false
	case op == engine.GradW:
		return newDirectW(e, p) != nil
	}
	return p.O <= fewFilters && !isPointwise(p) && newDirect(e, op, p) != nil
}
