package array

import (
	"unsafe"

	"ebtrain/ddp/graph"
)

// Place is where an array lies, and its physical shape.
type Place struct {
	Mem   unsafe.Pointer
	DType graph.DType
	Dims  graph.Shape
}

// Len is the number of elements.
func (p Place) Len() int { return p.Dims.Len() }

// Bytes is the memory.
func (p Place) Bytes() []byte { return Span[byte](p.Mem, p.Len()*p.DType.Size()) }

// Elems is the elements of an array whose type is E in memory.
func Elems[E any](p Place) []E { return Span[E](p.Mem, p.Len()) }

// Span is n elements at p.
func Span[E any](p unsafe.Pointer, n int) []E { return unsafe.Slice((*E)(p), n) }
