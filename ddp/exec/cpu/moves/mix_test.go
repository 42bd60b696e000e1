package moves

import (
	"math"
	"testing"

	"ebtrain/ddp/exec/cpu/array/arraytest"
)

func TestMixFloat32(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 64, 100, 131} {
		var from []source[float32]
		for taps := range 6 {
			got, want := make([]float32, n+1), make([]float32, n+1)
			got[n], want[n] = 7, 7 // a guard
			mixFloat32(got[:n], from)
			mix(want[:n], from)
			for i := range got {
				if d := math.Abs(float64(got[i] - want[i])); d > 1e-6 {
					t.Fatalf("%d sources, element %d of %d: %v, want %v", taps, i, n, got[i], want[i])
				}
			}
			x := make([]float32, n)
			for i := range x {
				x[i] = float32((i*7+taps*13)%23) / 23
			}
			from = append(from, source[float32]{x, 1 / float32(taps+2)})
		}
	}
}

// FuzzMix holds the mixer of float32 to the plain one, but for rounding, on
// pixels of any length between guard words, and demands that a number has the
// same bits wherever it lies.
func FuzzMix(f *testing.F) {
	arraytest.Seeds(f)
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		k, taps := int(n%150), int(n/150)%5
		x := arraytest.Floats(raw, (k+1)*taps)
		var from []source[float32]
		for i := range taps {
			from = append(from, source[float32]{x[i*(k+1):][:k], x[i*(k+1)+k]})
		}
		got, check := arraytest.Guarded(make([]float32, k))
		mixFloat32(got, from)
		if err := check(); err != nil {
			t.Fatalf("%d sources: %v", taps, err)
		}
		want := make([]float32, k)
		mix(want, from)
		for i := range got {
			size := 0.0
			alone := append([]source[float32](nil), from...)
			for s := range alone {
				alone[s].x = alone[s].x[i : i+1]
				size += math.Abs(float64(alone[s].x[0]) * float64(alone[s].w))
			}
			if d := math.Abs(float64(got[i]) - float64(want[i])); size < math.MaxFloat32/2 && !(d <= size*0x1p-20+0x1p-149*8) {
				t.Fatalf("%d sources, element %d of %d: %v, want %v", taps, i, k, got[i], want[i])
			}
			one := []float32{0}
			mixFloat32(one, alone)
			if _, ok := arraytest.SameBits(one, got[i:i+1]); !ok {
				t.Fatalf("%d sources, element %d of %d: %v, and %v alone", taps, i, k, got[i], one[0])
			}
		}
	})
}
