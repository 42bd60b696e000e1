package exec

import (
	"fmt"
	"math"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Tensor is a dense host tensor, row-major. Its memory is aligned to 64 bytes.
type Tensor struct {
	Type graph.Type
	data []byte
}

// NewTensor returns a tensor of zeros.
func NewTensor(t graph.Type) *Tensor {
	const align = 64
	raw := make([]byte, t.Bytes()+align)
	off := int(-uintptr(unsafe.Pointer(&raw[0])) & (align - 1))
	return &Tensor{Type: t, data: raw[off : off+t.Bytes() : off+t.Bytes()]}
}

// Bytes is the memory of the tensor.
func (t *Tensor) Bytes() []byte { return t.data }

// Scalar is the only element of a tensor of one element, as a float64.
func (t *Tensor) Scalar() float64 {
	if t.Type.Shape.Len() != 1 {
		panic(fmt.Sprintf("exec: %v is not a scalar", t.Type))
	}
	return t.At(0)
}

// At is element i in row-major order, as a float64.
func (t *Tensor) At(i int) float64 {
	switch t.Type.DType {
	case graph.F32:
		return float64(t.F32()[i])
	case graph.F64:
		return t.F64()[i]
	case graph.BF16:
		return float64(collective.FromBF16(elems[uint16](t)[i]))
	case graph.I32:
		return float64(t.I32()[i])
	case graph.I64:
		return float64(t.I64()[i])
	}
	return float64(t.data[i])
}

// SetAt sets element i in row-major order, rounding to nearest (even).
func (t *Tensor) SetAt(i int, v float64) {
	switch t.Type.DType {
	case graph.F32:
		t.F32()[i] = float32(v)
	case graph.F64:
		t.F64()[i] = v
	case graph.BF16:
		elems[uint16](t)[i] = collective.ToBF16(float32(v))
	case graph.I32:
		t.I32()[i] = int32(math.RoundToEven(v))
	case graph.I64:
		t.I64()[i] = int64(math.RoundToEven(v))
	default:
		t.data[i] = uint8(math.RoundToEven(v))
	}
}

// F32 is the elements of an F32 tensor; it shares memory. The others likewise.
func (t *Tensor) F32() []float32 { t.want(graph.F32); return elems[float32](t) }
func (t *Tensor) F64() []float64 { t.want(graph.F64); return elems[float64](t) }
func (t *Tensor) I32() []int32   { t.want(graph.I32); return elems[int32](t) }
func (t *Tensor) I64() []int64   { t.want(graph.I64); return elems[int64](t) }
func (t *Tensor) U8() []uint8    { t.want(graph.U8); return t.data }

// BF16 is the elements of a BF16 tensor, each the upper half of a float32.
func (t *Tensor) BF16() []uint16 { t.want(graph.BF16); return elems[uint16](t) }

func (t *Tensor) want(d graph.DType) {
	if t.Type.DType != d {
		panic(fmt.Sprintf("exec: %v read as %v", t.Type, d))
	}
}

func elems[E any](t *Tensor) []E {
	n := t.Type.Shape.Len()
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(t.data))), n)
}
