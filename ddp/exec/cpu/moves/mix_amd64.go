//go:build !noasm

package moves

import "golang.org/x/sys/cpu"

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
	case cpu.X86.HasAVX512F && len(from) > 0:
		mix16(&y[0], (*sourceFloat32)(&from[0]), len(from), p.n, p.count, p.dy, p.dx)
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		for i := range p.count {
			d := y[i*p.dy:][:p.n]
			clear(d)
			for _, s := range from {
				axpy8(&d[0], &s.x[i*p.dx], s.w, p.n)
			}
		}
	default:
		mix(y, from, p)
	}
}

//go:noescape
func axpy8(d, x *float32, s float32, n int)

// sourceFloat32 is what the assembly knows of a source, by go_asm.h.
type sourceFloat32 source[float32]

//go:noescape
func mix16(d *float32, from *sourceFloat32, sources, n, pixels, dy, dx int)
