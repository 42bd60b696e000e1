package collective

import (
	"math"
	"testing"
	"unsafe"
)

// A Vec of bytes seen as another type begins at the same place and has the
// elements that fit.
func TestAs(t *testing.T) {
	words := make([]int64, 5)
	mem := Vec{Type: U8, Len: 40, Ptr: unsafe.Pointer(&words[0])}
	for _, d := range []DType{F32, F64, BF16, I32, I64, U8} {
		v := mem.As(d)
		if v != (Vec{d, 40 / d.Size(), mem.Ptr}) || v.As(U8) != mem {
			t.Errorf("40 bytes as %v: %d elements, and back %d bytes", d, v.Len, v.As(U8).Len)
		}
	}
	if got := mem.Slice(0, 39).As(F64); got != (Vec{F64, 4, mem.Ptr}) {
		t.Errorf("39 bytes are %v[%d], want f64[4]", got.Type, got.Len)
	}
}

// TestEpsilon: 1 and the number behind it, of each type that has one.
func TestEpsilon(t *testing.T) {
	for d, next := range map[DType]float64{
		F32: float64(math.Nextafter32(1, 2)), F64: math.Nextafter(1, 2), BF16: float64(FromBF16(ToBF16(1) + 1)),
		I32: 1, I64: 1, U8: 1,
	} {
		if got := d.Epsilon(); got != next-1 || d.IsFloat() != (got > 0) {
			t.Errorf("%v: the number behind 1 is %v on, want %v", d, got, next-1)
		}
	}
}
