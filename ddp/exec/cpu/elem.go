package cpu

import (
	"math"
	"unsafe"

	"ebtrain/ddp/graph"
)

// span is n elements at p.
func span[E any](p unsafe.Pointer, n int) []E { return unsafe.Slice((*E)(p), n) }

// reader copies elements of one type to the type that a group computes in.
type reader[T number] func(dst []T, src unsafe.Pointer, at int)

// writer is the opposite, rounding to nearest; integers wrap around.
type writer[T number] func(dst unsafe.Pointer, at int, src []T)

func readerOf[T number](d graph.DType) reader[T] {
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
		for i, h := range span[uint16](src, at+len(dst))[at:] {
			dst[i] = T(fromBF16(h))
		}
	}
}

func readAs[T number, E float32 | float64 | int32 | int64 | uint8](dst []T, src unsafe.Pointer, at int) {
	for i, v := range span[E](src, at+len(dst))[at:] {
		dst[i] = T(v)
	}
}

func writerOf[T number](d graph.DType) writer[T] {
	switch d {
	case graph.F32:
		return writeAs[T, float32]
	case graph.F64:
		return writeAs[T, float64]
	case graph.BF16:
		return func(dst unsafe.Pointer, at int, src []T) {
			d := span[uint16](dst, at+len(src))[at:]
			for i, v := range src {
				d[i] = toBF16(float32(v))
			}
		}
	case graph.I32:
		return writeInt[T, int32]
	case graph.I64:
		return writeInt[T, int64]
	}
	return writeInt[T, uint8]
}

func writeAs[T number, E float32 | float64](dst unsafe.Pointer, at int, src []T) {
	d := span[E](dst, at+len(src))[at:]
	for i, v := range src {
		d[i] = E(v)
	}
}

func writeInt[T number, E int32 | int64 | uint8](dst unsafe.Pointer, at int, src []T) {
	d := span[E](dst, at+len(src))[at:]
	for i, v := range src {
		if n, ok := any(v).(int64); ok {
			d[i] = E(n)
			continue
		}
		d[i] = E(int64(math.RoundToEven(float64(v))))
	}
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// toBF16 rounds to nearest, ties to even; a NaN stays a NaN.
func toBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// rounder rounds a block to a type narrower than the one computed in; nil if
// there is nothing to do.
func rounder[T number](d graph.DType) func(x []T) {
	switch d {
	case graph.BF16:
		return func(x []T) {
			for i, v := range x {
				x[i] = T(fromBF16(toBF16(float32(v))))
			}
		}
	case graph.I32:
		return wrap[T, int32]
	case graph.U8:
		return wrap[T, uint8]
	}
	return nil
}

func wrap[T number, E int32 | uint8](x []T) {
	for i, v := range x {
		x[i] = T(E(v))
	}
}
