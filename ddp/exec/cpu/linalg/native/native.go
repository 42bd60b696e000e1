// Package native is the engine without C: a packed matrix product in Go with
// micro-kernels in AVX-512, AVX2, NEON or plain Go, and convolutions on top of it
// that gather image windows as they go. Which micro-kernel is used is found out
// at run time; with the tag noasm, and on other processors, it is plain Go.
//
// Everything is a product C = A·B, computed in micro-tiles of C that live in registers
// (package micro). A micro-tile's rows of A are read where they lie or gathered into a
// small buffer. B is packed into panels as wide as a micro-tile, unless few micro-tiles
// read them:
//
//	                        B, packed: columnBlock columns at a time
//	                        panel 0   panel 1
//	      depthBlock ┆     ┌────────┬────────┬┄
//	          of k   ┆     │ k × NR │        │
//	                       └────────┴────────┴┄
//	A, gathered            C
//	┌──────────┐           ┌────────┬────────┬┄
//	│ MR × k   │           │micro-  │        │
//	└──────────┘           │tile    │        │
//	┆                      └────────┴────────┴┄
//
// Sums run over k in equal blocks of about depthBlock, always in the same order, so results do not
// depend on the number of threads; they do depend on the micro-kernel.
//
//	op             A                   B
//	matmul         A or Aᵀ             B or Bᵀ             products
//	Forward        windows of x        the weight          direct, or products
//	GradX          windows of dy       the weight          direct, or products
//	GradW          windows of x, as    dy                  directW
//	               columns
//	  large dw     dyᵀ                 windows of x        gradW
//	heads          images reordered    the weight          head
//
// Windows are never written out (implicit im2col). They are read where the image lies
// (type band); where rows of the image are short, or taps no neighbours, they are gathered,
// a few strips of contiguous memory, for one block of depth at a time.
//
// Concurrency: an engine of New owns threads-1 goroutines, which Close ends. An engine
// and its kernels are used by one goroutine at a time.
package native

import (
	"errors"
	"fmt"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/threads"
)

// ErrClosed is returned by calls on a closed engine or kernel.
var ErrClosed = errors.New("native: closed")

// Engine is the plain-Go engine.
type Engine struct {
	kernel micro.Kernel
	pool   *threads.Pool[workspace] // nil after Close
	own    *threads.Team            // nil if it is somebody else's
}

// New starts an engine with the given number of threads, at least 1. It uses
// the best micro-kernel that the CPU has.
func New(n int) *Engine { return newEngine(n, micro.All()[0]) }

func newEngine(n int, mk micro.Kernel) *Engine {
	team := threads.NewTeam(n)
	e := on(team, mk)
	e.own = team
	return e
}

// On is an engine that works on a team, which it does not close.
func On(team *threads.Team) *Engine { return on(team, micro.All()[0]) }

func on(team *threads.Team, mk micro.Kernel) *Engine {
	return &Engine{kernel: mk, pool: threads.New(team, func(i int) *workspace { return newWorkspace(mk, i) })}
}

// ErrNoBF16 is what the engine says of bfloat16: it only multiplies float32.
var ErrNoBF16 = errors.New("plain Go multiplies float32 only, and this processor has no instructions for bfloat16 (AVX512_VNNI or AMX)")

// BF16 is always ErrNoBF16.
func (e *Engine) BF16() error { return ErrNoBF16 }

// Name is "plain Go (AVX-512)" or the like.
func (e *Engine) Name() string { return "plain Go (" + e.kernel.Name + ")" }

// Close ends the goroutines that New started. A second Close does nothing.
func (e *Engine) Close() error {
	if e.own != nil {
		e.own.Close()
	}
	e.pool, e.own = nil, nil
	return nil
}

// Conv prepares one op of a convolution; the only errors are a geometry that
// does not fit together and a closed engine.
func (e *Engine) Conv(op engine.ConvOp, p engine.ConvProblem) (engine.Kernel, error) {
	if err := p.Check(op); err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	if e.pool == nil {
		return nil, ErrClosed
	}
	if p.BF16 {
		return nil, fmt.Errorf("native: %v of %v: %w", op, p, ErrNoBF16)
	}
	switch {
	case isPointwise(p) && op != engine.GradW:
		return newPointwise(e, op, p), nil
	case isHead(p):
		return newHead(e, op, p), nil
	case op == engine.GradW:
		if k := newDirectW(e, p); k != nil {
			return k, nil
		}
		return newGradW(e, p), nil
	}
	if k := newDirect(e, op, p); k != nil {
		return k, nil
	}
	return newProducts(e, convProducts(op, p), convSizes(op, p)), nil
}

// MatMul prepares a matrix product.
func (e *Engine) MatMul(p engine.MatMulProblem) (engine.Kernel, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("native: %w", err)
	}
	if e.pool == nil {
		return nil, ErrClosed
	}
	if p.BF16 {
		return nil, fmt.Errorf("native: %v: %w", p, ErrNoBF16)
	}
	return newMatMul(e, p), nil
}

// sizes are the numbers of elements of a kernel's buffers.
type sizes struct {
	dst, a, b int
	exchanged bool // the product's A is b, its B is a
}

// operands are a kernel's buffers during one run.
type operands struct {
	dst, a, b, scratch []float32
}

// bind views the caller's memory, a and b exchanged if the product wants so.
func (s sizes) bind(dst, a, b, scratch unsafe.Pointer, scratchBytes int) operands {
	view := func(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }
	o := operands{view(dst, s.dst), view(a, s.a), view(b, s.b), view(scratch, scratchBytes/4)}
	if s.exchanged {
		o.a, o.b = o.b, o.a
	}
	return o
}
