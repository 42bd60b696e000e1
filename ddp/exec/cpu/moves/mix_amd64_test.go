//go:build !noasm

package moves

import (
	"testing"

	"golang.org/x/sys/cpu"

	"ebtrain/ddp/exec/cpu/array/arraytest"
)

// TestMixWithout runs the tests of mixing as on a processor that has less.
func TestMixWithout(t *testing.T) {
	defer func(a, b bool) { avx512, avx2 = a, b }(avx512, avx2)
	for _, c := range []struct {
		name         string
		avx512, avx2 bool
	}{{"without AVX-512", false, true}, {"without either", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			if c.avx2 && !(cpu.X86.HasAVX2 && cpu.X86.HasFMA) {
				t.Skip("this processor lacks AVX2 or FMA")
			}
			avx512, avx2 = c.avx512, c.avx2
			t.Run("mix", TestMixFloat32)
			t.Run("pixels", TestMixPixels)
			for n, raw := range arraytest.Examples() {
				for taps := range uint16(5) {
					arraytest.EitherWay(t, func() { checkMix(t, n%150+150*taps, raw) })
				}
			}
		})
	}
}
