// Package linalg is what libraries of convolutions and matrix products for a GPU
// are asked, and what they offer. It computes nothing. Who implements it, and who
// chooses:
//
//	cudnn      convolutions      cuDNN's engines, as its heuristics order them
//	cublaslt   products          cublasLt's algorithms, likewise
//	choose     problems          which candidate does a problem: timed, kept
//
// Everything in device memory is dense and lies at multiples of Align bytes. Images
// are (N, H, W, C), weights (O, KH, KW, C/Groups): channels last, both. Matrices are
// row-major.
//
// # Numbers
//
// Each operand and the result has an element type of its own, and a problem says how
// its operands may be multiplied (see Math). Sums are kept in float32, in float64
// where operands are. Candidates are deterministic: the same inputs on the same kind
// of device give the same bits. Two candidates for one problem need not.
//
// # Concurrency
//
// A Library and what it makes are used by one goroutine at a time, any. Enqueue may be
// captured, on the thread of the capture, once a run was queued on each of the streams
// without.
package linalg

import (
	"encoding/json"
	"fmt"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/graph"
)

// Align is the alignment in bytes of operands, results and workspaces; libraries want
// more of workspaces (see Room).
const (
	Align     = 64
	workAlign = 256
)

// Room is the size of a workspace in which n bytes can lie as libraries want them,
// and Start where they lie in it.
func Room(n int64) int64 {
	if n == 0 {
		return 0
	}
	return n + workAlign - Align
}

// Start is documented with Room.
func Start(work cuda.Ptr) cuda.Ptr { return (work + workAlign - 1) &^ (workAlign - 1) }

// Library prepares candidates.
type Library interface {
	// Name says what it is, for people, and tells versions apart: "cuDNN 9.19.0".
	Name() string
	// Prepare returns at most most candidates for a problem, in the order in which
	// the library expects them to be fast. None is no error: the library cannot do
	// the problem. The caller closes them.
	Prepare(p Problem, most int) ([]Candidate, error)
	// Restore makes the candidate again whose Saved it is given, of a library with
	// the same Name, on a device of the same kind.
	Restore(p Problem, saved json.RawMessage) (Candidate, error)
	// Close releases the library. Candidates are closed before.
	Close() error
}

// Candidate is one way to do a problem: dst = f(a, b).
type Candidate interface {
	// String is the candidate for people: "engine 38, knobs 2=1 12=0".
	fmt.Stringer
	// Workspace is the number of bytes of device memory that Enqueue needs.
	Workspace() int64
	// Enqueue puts one run onto the stream. work is Workspace bytes, contents
	// undefined before and after; the result overlaps nothing.
	Enqueue(s *cuda.Stream, o Operands, work cuda.Ptr) error
	// Saved is JSON from which Restore makes the candidate again.
	Saved() json.RawMessage
	// Close releases the candidate. No run of it is queued, and no captured graph
	// holds one.
	Close() error
}

// Operands are where a run's arrays lie.
type Operands struct{ Dst, A, B cuda.Ptr }

// Problem is a Conv or a Product. Problems are comparable.
type Problem interface {
	// String names the problem with everything that it depends on: equal problems
	// have equal names, others other names.
	fmt.Stringer
	// Check is nil if the problem makes sense.
	Check() error
	// Flops of one run, a multiply-add counted as two.
	Flops() int64
	// Lens are the numbers of elements of result and operands.
	Lens() (dst, a, b int64)
	// Types are the element types of result and operands, and how these are
	// multiplied.
	Types() Types
	// With is the same problem of other types.
	With(Types) Problem
}

// Types are the element types of a problem's result and operands, F32, F64 or BF16,
// and how its operands may be multiplied.
type Types struct {
	Dst, A, B graph.DType
	Math      Math
}

func (t Types) String() string { return fmt.Sprintf("%v,%v to %v, %v", t.A, t.B, t.Dst, t.Math) }

// check is nil if there is such a problem: float64 is not mixed with others.
func (t Types) check() error {
	n64 := 0
	for _, d := range [...]graph.DType{t.Dst, t.A, t.B} {
		switch d {
		case graph.F64:
			n64++
		case graph.F32, graph.BF16:
		default:
			return fmt.Errorf("want floats, got %v", t)
		}
	}
	if n64 != 0 && n64 != 3 {
		return fmt.Errorf("want all of float64 or none, got %v", t)
	}
	if t.Math > BF16 {
		return fmt.Errorf("there is no %v", t.Math)
	}
	return nil
}

// Math is how float32 operands may be multiplied. Products are added up in float32
// at least, and bfloat16 operands multiply exactly, all the same.
type Math uint8

const (
	Full Math = iota // as float32
	TF32             // rounded to 10 bits of mantissa first, where that is faster
	BF16             // rounded to bfloat16 first, or less, where that is faster
)

func (m Math) String() string {
	switch m {
	case Full:
		return "full"
	case TF32:
		return "tf32"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("Math(%d)", uint8(m))
}
