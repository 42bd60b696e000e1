//go:build !noasm

package moves

import "golang.org/x/sys/cpu"

// What the processor has; tests look at each alone.
var (
	avx512 = cpu.X86.HasAVX512F
	avx2   = cpu.X86.HasAVX2 && cpu.X86.HasFMA
)

// mixFloat32 is mix for float32: each number has the same bits wherever it lies
// in y.
func mixFloat32(y []float32, from []source[float32], p pixels) {
	if p.count == 0 || p.n == 0 {
		return
	}
	_ = y[(p.count-1)*p.dy:][:p.n]
	for i := range from {
		_ = from[i].x[(p.count-1)*p.dx:][:p.n]
	}
	switch {
	case len(from) > 0 && avx512:
		mix16(&y[0], (*sourceFloat32)(&from[0]), len(from), p.n, p.count, p.dy, p.dx)
	case len(from) > 0 && avx2:
		mix8(&y[0], (*sourceFloat32)(&from[0]), len(from), p.n, p.count, p.dy, p.dx)
	default:
		mix(y, from, p)
	}
}

// sourceFloat32 is what the assembly knows of a source, by go_asm.h.
type sourceFloat32 source[float32]

//go:noescape
func mix16(d *float32, from *sourceFloat32, sources, n, pixels, dy, dx int)

//go:noescape
func mix8(d *float32, from *sourceFloat32, sources, n, pixels, dy, dx int)
