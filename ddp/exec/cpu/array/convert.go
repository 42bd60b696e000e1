package array

import (
	"math"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Reader copies elements of one type to the type that a group computes in.
type Reader[T Number] func(dst []T, src unsafe.Pointer, at int)

// Writer is the opposite, rounding to nearest; integers wrap around.
type Writer[T Number] func(dst unsafe.Pointer, at int, src []T)

// ReaderOf reads elements of type d.
func ReaderOf[T Number](d graph.DType) Reader[T] {
	switch d {
	case graph.F32:
		return readAs[T, float32]
	case graph.F64:
		return readAs[T, float64]
	case graph.I32:
		return readAs[T, int32]
	case graph.I64:
		return readAs[T, int64]
	case graph.U8:
		return readAs[T, uint8]
	}
	return func(dst []T, src unsafe.Pointer, at int) {
		for i, h := range Span[uint16](src, at+len(dst))[at:] {
			dst[i] = T(collective.FromBF16(h))
		}
	}
}

func readAs[T Number, E float32 | float64 | int32 | int64 | uint8](dst []T, src unsafe.Pointer, at int) {
	for i, v := range Span[E](src, at+len(dst))[at:] {
		dst[i] = T(v)
	}
}

// WriterOf writes elements of type d.
func WriterOf[T Number](d graph.DType) Writer[T] {
	switch d {
	case graph.F32:
		return writeAs[T, float32]
	case graph.F64:
		return writeAs[T, float64]
	case graph.BF16:
		return func(dst unsafe.Pointer, at int, src []T) {
			d := Span[uint16](dst, at+len(src))[at:]
			for i, v := range src {
				d[i] = collective.ToBF16(float32(v))
			}
		}
	case graph.I32:
		return writeInt[T, int32]
	case graph.I64:
		return writeInt[T, int64]
	}
	return writeInt[T, uint8]
}

func writeAs[T Number, E float32 | float64](dst unsafe.Pointer, at int, src []T) {
	d := Span[E](dst, at+len(src))[at:]
	for i, v := range src {
		d[i] = E(v)
	}
}

func writeInt[T Number, E int32 | int64 | uint8](dst unsafe.Pointer, at int, src []T) {
	d := Span[E](dst, at+len(src))[at:]
	for i, v := range src {
		if n, ok := any(v).(int64); ok {
			d[i] = E(n)
			continue
		}
		d[i] = E(int64(math.RoundToEven(float64(v))))
	}
}

// Rounded is v as a T, integers to nearest.
func Rounded[T Number](v float64) T {
	if _, ok := any(T(0)).(int64); ok {
		v = math.RoundToEven(v)
	}
	return T(v)
}

// RounderOf is what rounds a block to a type narrower than the one computed in;
// nil if there is nothing to do.
func RounderOf[T Number](d graph.DType) func(x []T) {
	switch d {
	case graph.BF16:
		return func(x []T) {
			for i, v := range x {
				x[i] = T(collective.FromBF16(collective.ToBF16(float32(v))))
			}
		}
	case graph.I32:
		return wrap[T, int32]
	case graph.U8:
		return wrap[T, uint8]
	}
	return nil
}

func wrap[T Number, E int32 | uint8](x []T) {
	for i, v := range x {
		x[i] = T(E(v))
	}
}
