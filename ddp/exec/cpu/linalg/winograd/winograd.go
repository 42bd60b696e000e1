// Package winograd computes convolutions of 3×3 taps at stride 1, and of 4×4 taps at
// stride 2, by minimal filtering (Winograd 1980; Lavin and Gray 2015): tiles of
// images and filters are transformed, multiplied point by point, and
// transformed back. That takes a quarter of the multiplications of a plain
// convolution, or 2.56 times fewer at stride 2. It puts itself in front of another
// engine, which does everything else.
//
// # Transforms
//
// The maps of package-internal type scheme, for polynomials evaluated at points
// 0, ±a, ±b and infinity. The points decide how exact the result is: with a =
// 5/8, b = 3/2 the error is less than twice that of summing up a plain
// convolution in float32; with the textbook's 1 and 2 it is three and a half
// times a plain convolution's.
//
// # Three ops
//
// In the transformed domain all ops are matrix products, one for each point:
//
//	Forward  y  = Aᵀ [Σ_c (G w Gᵀ) ⊙ (Bᵀ x B)] A
//	GradX    the same with dy as the image and the filters turned around
//	GradW    dw = Gᵀ [Σ_tiles (A dy Aᵀ) ⊙ (Bᵀ x B)] G, its adjoint
//
// At stride 2 an image is four lattices, its odd and even rows and columns, each
// of which meets 2×2 taps.
//
// # Memory
//
// A tile is 4×4 results, or the 6×6 (at stride 2: 5×5) pixels of a lattice that they are
// made of; a point is one of their 36 (25) products. A vector is 16 channels. A panel
// is as many columns as the micro-kernel has (package micro), a block so many tiles, or
// so much depth, as stay in a cache.
//
//	correlation (Forward, GradX), for each point:
//
//	    V: a block of tiles       U: panels of filters       M: products
//	        k channels                width                    width
//	    ┌─────────────┐           ┌───────┬───────┬┄        ┌───────┐
//	    │             │ tiles   k │       │       │   tiles │       │ → tile by tile
//	    └─────────────┘           └───────┴───────┴┄        └───────┘   to y or dx
//
//	gradient (GradW), for each point:
//
//	    V: k channels of x        Z: panels of dy            dU
//	    ┌─────────────┐           ┌───────┬───────┬┄        ┌───────┐
//	    │             │ tiles     │       │       │ tiles k │       │ → filter by filter
//	    └─────────────┘           └───────┴───────┴┄        └───────┘   to dw
//
// Words of V, U and Z are numbers (type numbers): float32, or in problems that say BF16
// pairs of 16-bit integers with scales, where the processor multiplies those faster.
//
// # Kernels
//
//	               AVX-512            AVX2 with FMA
//	micro-kernel   12 × 32            6 × 16
//	on integers    with AVX512_VNNI   none
//	maps           one register       two registers, in turn    generated (_gen)
//	transposition  package transpose
//	scaling        scale_amd64.s      none
//	prefetching    with the integers  none
//
// Results do not depend on the number of threads; they do depend on the
// instruction set, of which the better one is found out at run time. Without
// either, and with the tag noasm, On changes nothing and the other engine does
// everything.
//
// Concurrency: as package engine says.
package winograd

import (
	"errors"
	"fmt"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// ErrClosed is returned by calls on a closed engine or kernel.
var ErrClosed = errors.New("winograd: closed")

// Engine computes the convolutions that it can, and leaves the rest to another.
// Where it has integers for what may be multiplied as bfloat16, it takes such
// problems even if the other engine does not, which then gets them as float32.
type Engine struct {
	engine.Engine
	pool     *threads.Pool[workspace] // nil after Close
	f43, f42 *scheme
	always   bool // whether it pays or not
}

// On puts a team of threads in front of an engine, which it closes in the end.
// The team it leaves open.
func On(team *threads.Team, rest engine.Engine) engine.Engine {
	list := isas()
	if len(list) == 0 {
		return rest
	}
	return newEngine(rest, team, &list[0])
}

func newEngine(rest engine.Engine, team *threads.Team, i *isa) *Engine {
	pool := threads.New(team, func(thread int) *workspace { return newWorkspace(i.kernel.NR, thread) })
	return &Engine{Engine: rest, pool: pool, f43: newF43(i), f42: newF42(i)}
}

// Name is the other engine's name and "Winograd".
func (e *Engine) Name() string { return e.Engine.Name() + " + Winograd" }

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
	s := e.scheme(p)
	if e.pool == nil || p.Check(op) != nil || !fits(p) || !s.pays(op, p) && !e.always {
		p.BF16 = p.BF16 && !e.takesBF16()
		return e.Engine.Conv(op, p)
	}
	if op == engine.GradW {
		return newGradient(e, s, p), nil
	}
	return newCorrelation(e, s, op, p), nil
}

// MatMul leaves a matrix product to the other engine.
func (e *Engine) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	p.BF16 = p.BF16 && !e.takesBF16()
	return e.Engine.MatMul(p)
}

// BF16 is what the other engine says, unless this one is faster for it.
func (e *Engine) BF16() error {
	if e.takesBF16() {
		return nil
	}
	return e.Engine.BF16()
}

// takesBF16 says that the other engine has no bfloat16, but this one something as
// good.
func (e *Engine) takesBF16() bool { return e.f43.int16s != nil && e.Engine.BF16() != nil }

func (e *Engine) scheme(p engine.ConvProblem) *scheme {
	if p.StrideH == 1 {
		return e.f43
	}
	return e.f42
}

// check names a kernel of the problem that was closed.
func (e *Engine) check(op engine.ConvOp, p engine.ConvProblem) error {
	if e == nil || e.pool == nil {
		return fmt.Errorf("%v of %v: %w", op, p, ErrClosed)
	}
	return nil
}

// growZeros makes every thread's zeros long enough.
func (e *Engine) growZeros(n int) {
	e.pool.Each(func(ws *workspace) {
		if len(ws.zeros) < n {
			ws.zeros = make([]float32, n)
		}
	})
}
