// Package amx computes convolutions and matrix products that may be multiplied as
// bfloat16 with the matrix instructions of Intel's processors (AMX: Sapphire Rapids and
// later), which multiply sixteen times as fast as AVX-512 multiplies float32. It puts
// itself in front of another engine, which does everything else: float32, channels that
// are no multiples of 32, groups, weight gradients over less than 32 pixels.
//
// # Tiles
//
// A tile is a register of 16 rows of 64 bytes. One instruction multiplies 16 rows of A,
// 32 deep, by 16 columns of B, and adds float32s:
//
//	A: 16 rows            B: 16 rows of two in depth       C: 16 × 16 float32
//	k0 k1 k2 … k31        column 0  column 1  …
//	                      k0 k1     k0 k1     …
//	                      k2 k3     k2 k3     …
//
// A block (type block) is 2 × 2 tiles of C at a time: four tiles are loaded for four
// multiplications.
//
// # Three ops
//
// All are products with windows of images (package lower). Images are rounded once, to
// bfloat16, with borders of zeros, so that windows are never cut; a row of A, 32 channels of
// a tap, is then read where it lies, if 16 pixels of results are neighbours, and else
// gathered.
//
//	Forward   y  = windows of x · w     rows of A are windows; the weight is packed
//	GradX     dx = windows of dy · w    the same, for each remainder by the stride
//	GradW     dw = dyᵀ · windows of x   both are interleaved, by pairs of pixels
//	A·B, A·Bᵀ, Aᵀ·B                     of 1×1 windows: GradX, Forward, GradW
//
// # Memory, in scratch
//
//	correlation (Forward, GradX)       gradient (GradW)
//	image, bfloat16                    dyᵀ in tiles
//	weight: panels of 16 columns,      image of x, bfloat16
//	        all of the depth           sums, float32
//
// Panels of windows, stepsBlock deep, and what is gathered or transposed, are the
// thread's own.
//
// Results do not depend on the number of threads. As the processor's instructions do,
// everything counts subnormal numbers as zero. Tiles are the process's after a request to
// Linux (5.16 or later), which On makes; where it is refused On changes nothing. No tile is
// in use outside of multiply, so none is lost when a goroutine changes its thread.
//
// Concurrency: as package engine says.
package amx

import (
	"errors"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// ErrClosed is returned by calls on a closed engine or kernel.
var ErrClosed = errors.New("amx: closed")

// Engine computes what may be multiplied as bfloat16 and is big enough, and leaves the
// rest to another.
type Engine struct {
	engine.Engine
	kernels kernels
	pool    *threads.Pool[workspace] // nil after Close
}

// On puts a team of threads in front of an engine, which it closes in the end, where
// the processor has matrix instructions and the system lets this process use them.
// The team it leaves open.
func On(team *threads.Team, rest engine.Engine) engine.Engine {
	k, ok := available()
	if !ok {
		return rest
	}
	return newEngine(team, rest, k)
}

func newEngine(team *threads.Team, rest engine.Engine, k kernels) *Engine {
	return &Engine{Engine: rest, kernels: k, pool: threads.New(team, func(int) *workspace { return newWorkspace() })}
}

// Name is the other engine's name and "AMX".
func (e *Engine) Name() string { return e.Engine.Name() + " + AMX" }

// BF16 is nil: there is nothing faster. What is left to an engine that has none, it gets
// as float32.
func (e *Engine) BF16() error { return nil }

// Close closes the other engine.
func (e *Engine) Close() error {
	e.pool = nil
	return e.Engine.Close()
}

// forget has all threads drop the addresses that kernels left in their workspaces, or the
// memory of a closed program would be kept until another kernel has run.
func (e *Engine) forget() {
	if e != nil && e.pool != nil {
		e.pool.Each((*workspace).forget)
	}
}

// Conv prepares one op of a convolution.
func (e *Engine) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	if e.pool == nil || p.Check(op) != nil || !fits(op, p) {
		p.BF16 = p.BF16 && e.Engine.BF16() == nil
		return e.Engine.Conv(op, p)
	}
	if op == engine.GradW {
		return newGradient(e, p), nil
	}
	return newCorrelation(e, op, p), nil
}

// MatMul prepares a matrix product: that of a 1×1 convolution.
func (e *Engine) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	op, c, flip := asConv(p)
	if e.pool == nil || p.Check() != nil || op == 0 || !fits(op, c) {
		p.BF16 = p.BF16 && e.Engine.BF16() == nil
		return e.Engine.MatMul(p)
	}
	if op == engine.GradW {
		k := newGradient(e, c)
		k.flip = flip
		return k, nil
	}
	k := newCorrelation(e, op, c)
	k.flip = k.flip != flip
	return k, nil
}

// asConv is a matrix product as an op of a 1×1 convolution, whose operands may be the
// other way around; op is 0 where it is none.
func asConv(p engine.MatMulProblem) (op engine.ConvOp, c engine.ConvProblem, flip bool) {
	plain := func(pixels, channels, filters int) engine.ConvProblem {
		return engine.ConvProblem{
			Conv: graph.NewConv(1, 1, 0),
			N:    1, H: 1, W: pixels, C: channels, OH: 1, OW: pixels, O: filters, BF16: p.BF16,
		}
	}
	switch {
	case p.TransA && p.TransB:
		return 0, c, false
	case p.TransA: // z (filters, channels) = dyᵀ · x
		return engine.GradW, plain(p.K, p.N, p.M), true
	case p.TransB: // z (pixels, filters) = x · wᵀ
		return engine.Forward, plain(p.M, p.K, p.N), false
	default: // z (pixels, channels) = dy · w
		return engine.GradX, plain(p.M, p.N, p.K), true
	}
}

// fits says whether a convolution is computed here: whole steps of channels on both
// sides, and at least one of pixels where those are what is summed. It sees the geometry
// only, so that all runs on a machine agree.
func fits(op engine.ConvOp, p engine.ConvProblem) bool {
	channels := p.BF16 && p.Groups == 1 && p.C%stepDepth == 0 && p.O%stepDepth == 0
	return channels && (op != engine.GradW || p.N*p.OH*p.OW >= stepDepth)
}

// isPlain says whether images are matrices as they lie, and windows their rows.
func isPlain(p engine.ConvProblem) bool {
	return p.KH*p.KW == 1 && p.StrideH == 1 && p.StrideW == 1 && p.OH == p.H && p.OW == p.W
}

// chunks is into how many pieces work is cut.
func (e *Engine) chunks() int {
	if n := e.pool.Threads(); n > 1 {
		return 4 * n
	}
	return 1
}

// aligned is so many bytes up to the next boundary of 64.
func aligned(n int) int { return (n + rowBytes - 1) &^ (rowBytes - 1) }
