package collective

import (
	"fmt"
	"unsafe"
)

// DType is the type of one element.
type DType uint8

const (
	F32 DType = iota + 1
	F64
	BF16 // the upper 16 bits of an F32; in Go a uint16
	I32
	I64
	U8
)

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case F64, I64:
		return 8
	case F32, I32:
		return 4
	case BF16:
		return 2
	case U8:
		return 1
	}
	panic(fmt.Sprintf("collective: invalid DType %d", uint8(d)))
}

// IsFloat says whether d is a floating-point type.
func (d DType) IsFloat() bool { return d == F32 || d == F64 || d == BF16 }

// Epsilon is the distance from 1 to the next number of a floating-point type; 0 for
// integers.
func (d DType) Epsilon() float64 {
	switch d {
	case F32:
		return 0x1p-23
	case F64:
		return 0x1p-52
	case BF16:
		return 0x1p-7
	}
	return 0
}

func (d DType) String() string {
	if int(d) < len(dtypeNames) && d != 0 {
		return dtypeNames[d]
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

var dtypeNames = [...]string{F32: "f32", F64: "f64", BF16: "bf16", I32: "i32", I64: "i64", U8: "u8"}

// Vec is a run of Len elements of type Type at Ptr, in host memory, or in
// device memory where the Comm says so. Ptr is aligned to the element size
// and may be nil when Len is 0.
type Vec struct {
	Type DType
	Len  int
	Ptr  unsafe.Pointer
}

// Elem lists the Go types that a Vec can be made of. BF16 has no Go type of
// its own: use VecBF16.
type Elem interface {
	float32 | float64 | int32 | int64 | uint8
}

// VecOf is the Vec over s. It shares s's memory and keeps it alive.
func VecOf[T Elem](s []T) Vec {
	var zero T
	v := Vec{Len: len(s), Ptr: unsafe.Pointer(unsafe.SliceData(s))}
	switch any(zero).(type) {
	case float32:
		v.Type = F32
	case float64:
		v.Type = F64
	case int32:
		v.Type = I32
	case int64:
		v.Type = I64
	case uint8:
		v.Type = U8
	}
	return v
}

// VecBF16 is the Vec over s, each element the upper half of a float32.
func VecBF16(s []uint16) Vec {
	return Vec{Type: BF16, Len: len(s), Ptr: unsafe.Pointer(unsafe.SliceData(s))}
}

// As is the same memory as elements of type d: those that fit in it.
func (v Vec) As(d DType) Vec {
	return Vec{Type: d, Len: v.Len * v.Type.Size() / d.Size(), Ptr: v.Ptr}
}

// Bytes is the memory of v, which must be the host's.
func (v Vec) Bytes() []byte {
	return unsafe.Slice((*byte)(v.Ptr), v.Len*v.Type.Size())
}
