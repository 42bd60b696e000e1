package collective

import (
	"math"
	"testing"
)

// Every BF16 is what its own value rounds to, and numbers between two go to the
// nearer, from the middle to the even one.
func TestBF16(t *testing.T) {
	for h := range 1 << 16 {
		h := uint16(h)
		x := FromBF16(h)
		if x != x {
			if y := FromBF16(ToBF16(x)); y == y {
				t.Fatalf("NaN %04x became %v", h, y)
			}
			low := uint32(h&0xff80)<<16 | 1 // of which the upper half alone is an infinity
			if y := FromBF16(ToBF16(math.Float32frombits(low))); y == y {
				t.Fatalf("NaN %08x became %v", low, y)
			}
			continue
		}
		if got := ToBF16(x); got != h {
			t.Fatalf("%v is %04x, want %04x", x, got, h)
		}
		if math.IsInf(float64(x), 0) {
			continue
		}
		up := h + 1 // away from 0
		for _, c := range []struct {
			below uint32
			want  uint16
		}{{0x7fff, h}, {0x8000, h + h&1}, {0x8001, up}} {
			if got := ToBF16(math.Float32frombits(uint32(h)<<16 | c.below)); got != c.want {
				t.Fatalf("%04x%04x is %04x, want %04x", h, c.below, got, c.want)
			}
		}
	}
}
