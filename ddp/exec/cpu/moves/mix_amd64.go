//go:build !noasm

package moves

import "golang.org/x/sys/cpu"

// mixFloat32 is mix for float32.
func mixFloat32(y []float32, from []source[float32]) {
	if n := len(y) &^ 15; cpu.X86.HasAVX512F && n > 0 && len(from) > 0 {
		mix16(&y[0], (*sourceFloat32)(&from[0]), len(from), n)
		if n == len(y) {
			return
		}
	}
	clear(y)
	for _, s := range from {
		axpyFloat32(y, s.x, s.w)
	}
}

// axpyFloat32 is axpy for float32.
func axpyFloat32(d, x []float32, s float32) {
	n := 0
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		if n = len(d) &^ 7; n > 0 {
			axpy8(&d[0], &x[0], s, n)
		}
	}
	axpy(d[n:], x[n:len(d)], s)
}

//go:noescape
func axpy8(d, x *float32, s float32, n int)

// sourceFloat32 is what the assembly knows of a source, by go_asm.h.
type sourceFloat32 source[float32]

//go:noescape
func mix16(d *float32, from *sourceFloat32, sources, n int)
