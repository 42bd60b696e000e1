//go:build !noasm

package micro

import "golang.org/x/sys/cpu"

// All are the kernels that this CPU can run, best first.
func All() (ks []Kernel) {
	if cpu.X86.HasAVX512F {
		ks = append(ks, Kernel{Name: "AVX-512", MR: 12, NR: 32, Run: kernelAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ks = append(ks, Kernel{Name: "AVX2", MR: 6, NR: 16, Run: runKernel6x16})
	}
	return append(ks, generic)
}

// Int16 is the kernel of 16-bit integers, if the CPU multiplies and adds pairs of
// them as fast as single float32 (AVX512_VNNI).
func Int16() (k Int16Kernel, ok bool) {
	return Int16Kernel{MR: 12, NR: 32, Run: kernelVNNI}, cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI
}

func kernelVNNI(k int, a []uint32, rs, ks int, b []uint32, c []float32, off *[MaxMR]int, sa, sb []float32, rows, cols int, add bool) {
	checkSlices(k, a, rs, ks, b, c, off, rows, cols, 12, 32)
	_, _ = sa[rows-1], sb[31]
	int16Kernel12x32(k, &a[0], rs, ks, &b[0], &c[0], off, &sa[0], &sb[0], rows, uint32(1<<cols-1), add)
}

func kernelAVX512(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	checkSlices(k, a, rs, ks, b, c, off, rows, cols, 12, 32)
	kernel12x32(k, &a[0], rs, ks, &b[0], &c[0], off, rows, uint32(1<<cols-1), add)
}

// kernel12x32 is Kernel.Run with mr = 12, nr = 32; bit j of mask says whether
// column j exists.
//
//go:noescape
func kernel12x32(k int, a *float32, rs, ks int, b, c *float32, off *[MaxMR]int, rows int, mask uint32, add bool)

// int16Kernel12x32 is Int16Kernel.Run with mr = 12, nr = 32; mask as kernel12x32.
//
//go:noescape
func int16Kernel12x32(k int, a *uint32, rs, ks int, b *uint32, c *float32, off *[MaxMR]int, sa, sb *float32, rows int, mask uint32, add bool)
