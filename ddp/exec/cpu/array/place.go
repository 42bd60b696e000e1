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

// From is the address of element n, where an array of shape s begins. Of one
// without elements it is the place itself: n may lie outside.
func (p Place) From(n int, s graph.Shape) unsafe.Pointer {
	if s.Len() == 0 {
		return p.Mem
	}
	return unsafe.Add(p.Mem, n*p.DType.Size())
}

// Bytes is the memory.
func (p Place) Bytes() []byte { return Span[byte](p.Mem, p.Len()*p.DType.Size()) }

// Elems is the elements of an array whose type is E in memory.
func Elems[E any](p Place) []E { return Span[E](p.Mem, p.Len()) }

// Span is n elements at p.
func Span[E any](p unsafe.Pointer, n int) []E { return unsafe.Slice((*E)(p), n) }
