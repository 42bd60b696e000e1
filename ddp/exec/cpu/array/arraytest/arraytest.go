// Package arraytest helps to test kernels: slices between guard words, and
// comparisons of bits. It has no kernels of its own.
package arraytest

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"testing"
)

const guard, guards = 12345, 32 // what is written on either side of a slice, and how often

// Guarded is a copy of x between guard words, and a check that they still stand,
// which names the first that does not.
func Guarded[T float32 | float64](x []T) ([]T, func() error) {
	all := make([]T, len(x)+2*guards)
	for i := range all {
		all[i] = guard
	}
	inside := all[guards : guards+len(x) : guards+len(x)]
	copy(inside, x)
	return inside, func() error {
		for i, v := range all {
			if (i < guards || i >= guards+len(x)) && v != guard {
				return fmt.Errorf("element %d of %d was written", i-guards, len(x))
			}
		}
		return nil
	}
}

// SameBits is the first place where x and y differ; NaNs are all alike.
func SameBits(x, y []float32) (int, bool) {
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) && (x[i] == x[i] || y[i] == y[i]) {
			return i, false
		}
	}
	return 0, true
}

// hard are the values that kernels get wrong. They are float32 already: converting a subnormal
// number may make it zero (see EitherWay).
var hard = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0x1p-126, 0x1p-140, -0x1p-149,
	math.MaxFloat32, -math.MaxFloat32, 88, 89, -87, -88, -103, -104, -110, 20, -20, 0.5, 1e-7, -1e-7, 9, -9, 1e-4, 17.3, 3e5}

// Floats are n numbers that the bytes of a fuzz target's input name, again from
// the start where they end: of four bytes, the bits of a float32, but where the
// first is below 64, one of the values that kernels get wrong.
func Floats(raw []byte, n int) []float32 {
	x := make([]float32, n)
	if len(raw) == 0 {
		return x
	}
	var w [4]byte
	for i := range x {
		for k := range w {
			w[k] = raw[(4*i+k)%len(raw)]
		}
		if w[0] < 64 {
			x[i] = hard[int(w[0])%len(hard)]
			continue
		}
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(w[:]))
	}
	return x
}

// Seeds adds the examples to a fuzz target.
func Seeds(f *testing.F) {
	for n, raw := range Examples() {
		f.Add(n, raw)
	}
}

// Examples are inputs of some hundred bytes, for lengths around those of vectors.
func Examples() iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for i, n := range []uint16{1, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 127, 129, 200} {
			raw := make([]byte, 4*61)
			for k := range raw {
				raw[k] = byte((k*k*31 + k*7 + 13*i) >> 2) // any
			}
			for k := 3; k < len(raw); k += 4 { // mostly ordinary exponents
				raw[k] = 0x3d + raw[k]%6 | raw[k]&0x80
			}
			if !yield(n, raw) {
				return
			}
		}
	}
}
