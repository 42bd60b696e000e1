//go:build amd64 && !noasm

package reduce

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"ebtrain/collective"
)

// vectorAdd does the first elements of an addition of two to four sources
// with vector instructions and says how many: all but a tail, or none.
func vectorAdd[T number](dst []T, srcs ...[]T) int {
	var zero T
	n := len(dst) &^ (128/int(unsafe.Sizeof(zero)) - 1)
	if n == 0 || !cpu.X86.HasAVX {
		return 0
	}
	var p [4]unsafe.Pointer
	for i, s := range srcs {
		p[i] = unsafe.Pointer(&s[:n][0])
	}
	switch out := any(&dst[0]).(type) {
	case *float32:
		switch len(srcs) {
		case 2:
			add2F32(out, (*float32)(p[0]), (*float32)(p[1]), n)
		case 3:
			add3F32(out, (*float32)(p[0]), (*float32)(p[1]), (*float32)(p[2]), n)
		case 4:
			add4F32(out, (*float32)(p[0]), (*float32)(p[1]), (*float32)(p[2]), (*float32)(p[3]), n)
		}
		return n
	case *float64:
		switch len(srcs) {
		case 2:
			add2F64(out, (*float64)(p[0]), (*float64)(p[1]), n)
		case 3:
			add3F64(out, (*float64)(p[0]), (*float64)(p[1]), (*float64)(p[2]), n)
		case 4:
			add4F64(out, (*float64)(p[0]), (*float64)(p[1]), (*float64)(p[2]), (*float64)(p[3]), n)
		}
		return n
	}
	return 0
}

// vectorAll does the first elements of Everywhere for a sum times r of two to
// four vectors, and says how many bytes of each: all but a tail, or none.
func vectorAll(t collective.DType, vectors [][]byte, r float64) int {
	n := len(vectors[0]) &^ 127
	if n == 0 || len(vectors) < 2 || len(vectors) > 4 || !cpu.X86.HasAVX {
		return 0
	}
	var p [4]unsafe.Pointer
	for i, v := range vectors {
		p[i] = unsafe.Pointer(&v[:n][0])
	}
	switch t {
	case collective.F32:
		a, b, c, d := (*float32)(p[0]), (*float32)(p[1]), (*float32)(p[2]), (*float32)(p[3])
		switch len(vectors) {
		case 2:
			all2F32(a, b, n/4, float32(r))
		case 3:
			all3F32(a, b, c, n/4, float32(r))
		case 4:
			all4F32(a, b, c, d, n/4, float32(r))
		}
		return n
	case collective.F64:
		a, b, c, d := (*float64)(p[0]), (*float64)(p[1]), (*float64)(p[2]), (*float64)(p[3])
		switch len(vectors) {
		case 2:
			all2F64(a, b, n/8, r)
		case 3:
			all3F64(a, b, c, n/8, r)
		case 4:
			all4F64(a, b, c, d, n/8, r)
		}
		return n
	}
	return 0
}

// vectorScale does the first elements of x[i] *= r, and says how many.
func vectorScale[T number](x []T, r T) int {
	n := len(x) &^ (128/int(unsafe.Sizeof(r)) - 1)
	if n == 0 || !cpu.X86.HasAVX {
		return 0
	}
	switch p := any(&x[0]).(type) {
	case *float32:
		scaleF32(p, n, float32(r))
		return n
	case *float64:
		scaleF64(p, n, float64(r))
		return n
	}
	return 0
}
