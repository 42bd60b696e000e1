package collective

import (
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
