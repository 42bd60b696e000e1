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
// convolution in float32; with the textbook's 1 and 2 it is four times as big.
//
// # Three ops
//
// In the transformed domain all ops are matrix products, one for each point:
//
//	Forward  y  = Aᵀ [Σ_c (G w Gᵀ) ⊙ (Bᵀ x B)] A
//	GradX    the same with dy as the image and the filters turned around
//	GradW    dw = Gᵀ [Σ_tiles (A dy Aᵀ) ⊙ (Bᵀ x B)] G, its adjoint
//
// At stride 2 an image is four images, of its odd and even rows and columns,
// each seen through 2×2 taps.
//
// Results do not depend on the number of threads. They need AVX-512; without it
// Over changes nothing.
//
// Concurrency: as package engine says. The engine of Over owns threads-1
// goroutines, which Close ends.
package winograd

import (
	"errors"
	"fmt"

	"ebtrain/ddp/exec/cpu/engine"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/cpu/tile"
)

// ErrClosed is returned by calls on a closed engine or kernel.
var ErrClosed = errors.New("winograd: closed")

// width is the columns of a micro-kernel and of a panel of B.
const width = 32

// Engine computes the convolutions that it can, and leaves the rest to another.
type Engine struct {
	engine.Engine
	pool     *threads.Pool[workspace] // nil after Close
	own      *threads.Team            // nil if it is somebody else's
	tile     tile.Kernel
	f43, f42 *scheme
	always   bool // whether it pays or not
}

// Over puts n threads in front of an engine, which it closes in the end.
func Over(rest engine.Engine, n int) engine.Engine {
	team := threads.NewTeam(n)
	e, ok := On(team, rest).(*Engine)
	if !ok {
		team.Close()
		return rest
	}
	e.own = team
	return e
}

// On is Over with a team of threads that it does not close.
func On(team *threads.Team, rest engine.Engine) engine.Engine {
	k := tile.All()[0]
	if !available() || k.NR != width {
		return rest
	}
	return &Engine{Engine: rest, pool: threads.New(team, newWorkspace), tile: k, f43: newF43(), f42: newF42()}
}

// Name is the other engine's name and "Winograd".
func (e *Engine) Name() string { return e.Engine.Name() + " + Winograd" }

// Close ends the goroutines that Over started, and closes the other engine.
func (e *Engine) Close() error {
	if e.own != nil {
		e.own.Close()
	}
	e.pool, e.own = nil, nil
	return e.Engine.Close()
}

// Conv prepares one op of a convolution.
func (e *Engine) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	s := e.scheme(p)
	if e.pool == nil || p.Check(op) != nil || !fits(p) || !s.pays(op, p) && !e.always {
		return e.Engine.Conv(op, p)
	}
	if op == engine.GradW {
		return newGradient(e, s, p), nil
	}
	return newCorrelation(e, s, op, p), nil
}

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
