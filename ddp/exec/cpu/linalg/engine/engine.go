// Package engine is what the CPU backend asks of a library of heavy linear
// algebra: convolutions and matrix products as prepared kernels. It computes
// nothing. Engines, and the instruction sets that they have kernels for:
//
//	dnnl      oneDNN by cgo          whatever oneDNN has: SSE4.1 to AMX
//	native    micro-kernels          AVX-512, AVX2, NEON, any (Go)
//	winograd  in front of either     AVX-512 (bf16 by VNNI), AVX2
//	amx       in front of any, bf16  AMX
//
// Everything in memory is dense float32. Images are (N, H, W, C), "channels
// last"; weights (O, C/Groups, KH, KW), row-major; matrices row-major:
//
//	image    pixel 0,0      pixel 0,1      …  pixel 1,0      …
//	         c0 c1 … cC-1 │ c0 c1 … cC-1 │ … │ c0 c1 … cC-1 │ …
//	weight   filter 0                                       filter 1
//	         c0: KH rows of KW taps │ c1: KH × KW taps │ … │ c0: …
//
// An engine that prefers another layout for weights reorders inside the kernel,
// in scratch memory.
//
// Numbers are multiplied as float32. A problem that says BF16 may be multiplied
// as bfloat16 where that is faster: the kernel rounds every element of both
// operands to bfloat16 (to nearest, ties to even), multiplies those, and adds up
// in float32. Or in another way that is as exact, in root mean square over the
// result. Operands and results stay float32 in memory.
//
// An operand's NaN makes NaN of all results that have a term of it. It may do so to others
// of a tile, too, as infinities may.
//
// Results are deterministic: the same inputs and the same number of threads
// give the same bits.
//
// Concurrency: an Engine and its kernels are used by one goroutine at a time,
// always the same locked OS thread; a kernel may use several threads inside.
package engine

import (
	"unsafe"

	"ebtrain/ddp/graph"
)

// Engine prepares kernels.
type Engine interface {
	// Name says what it is, for people: "oneDNN 2.6.3", "plain Go (AVX-512)".
	Name() string
	// BF16 is nil if the engine takes problems that say BF16 and is faster for
	// it; otherwise it says in a sentence why not.
	BF16() error
	// Conv prepares one of the three ops of a convolution.
	Conv(op ConvOp, p ConvProblem) (Kernel, error)
	// MatMul prepares a matrix product.
	MatMul(p MatMulProblem) (Kernel, error)
	// Close releases everything the engine holds. Kernels are closed before.
	Close() error
}

// Kernel is a prepared computation dst = f(a, b).
type Kernel interface {
	// Scratch is the number of bytes of scratch memory that Run needs.
	Scratch() int
	// Run computes dst from a and b; scratch is Scratch() bytes, aligned to 64,
	// contents undefined before and after. dst overlaps nothing.
	Run(dst, a, b, scratch unsafe.Pointer) error
	// Close releases the kernel. The engine keeps nothing alive of the memory of its runs.
	Close() error
}

// ConvOp is which of the three ops of a convolution (see graph.Conv).
type ConvOp uint8

const (
	Forward ConvOp = iota + 1 // y from (x, w)
	GradX                     // dx from (w, dy)
	GradW                     // dw from (x, dy)
)

// ConvProblem is the geometry of a convolution: x (N,H,W,C), w (O,C/G,KH,KW),
// y (N,OH,OW,O), all float32.
type ConvProblem struct {
	graph.Conv
	N, C, H, W int
	O, OH, OW  int
	BF16       bool // may multiply as inexactly as bfloat16
}

// Flops of one run of any of the three ops, a multiply-add counted as two.
func (p ConvProblem) Flops() int64 {
	return 2 * int64(p.N) * int64(p.OH) * int64(p.OW) * int64(p.O) * int64(p.C/p.Groups) * int64(p.KH) * int64(p.KW)
}

// MatMulProblem is z (M,N) = A (M,K) · B (K,N), where a holds A, or Aᵀ if
// TransA, and b holds B, or Bᵀ if TransB, all float32.
type MatMulProblem struct {
	M, N, K        int
	TransA, TransB bool
	BF16           bool // may multiply as inexactly as bfloat16
}

// Flops of one run, a multiply-add counted as two.
func (p MatMulProblem) Flops() int64 { return 2 * int64(p.M) * int64(p.N) * int64(p.K) }
