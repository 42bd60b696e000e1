package moves

import (
	"math"
	"testing"
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
