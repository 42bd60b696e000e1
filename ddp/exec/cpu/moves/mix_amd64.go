//go:build !noasm

package moves

import "golang.org/x/sys/cpu"

// mixFloat32 is mix for float32: each number has the same bits wherever it lies
// in y.
func mixFloat32(y []float32, from []source[float32]) {
	switch {
	case cpu.X86.HasAVX512F && len(y) > 0 && len(from) > 0:
		mix16(&y[0], (*sourceFloat32)(&from[0]), len(from), len(y))
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA && len(y) > 0:
		clear(y)
		for _, s := range from {
			axpy8(&y[0], &s.x[:len(y)][0], s.w, len(y))
		}
	default:
		mix(y, from)
	}
}

//go:noescape
func axpy8(d, x *float32, s float32, n int)

// sourceFloat32 is what the assembly knows of a source, by go_asm.h.
type sourceFloat32 source[float32]

//go:noescape
func mix16(d *float32, from *sourceFloat32, sources, n int)
