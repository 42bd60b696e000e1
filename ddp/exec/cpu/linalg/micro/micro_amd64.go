//go:build !noasm

package micro

import "golang.org/x/sys/cpu"

// All are the kernels that this CPU can run, best first.
func All() (ks []Kernel) {
	if cpu.X86.HasAVX512F {
		ks = append(ks, Kernel{Name: "AVX-512", MR: 12, NR: 32, Run: kernelAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ks = append(ks, Kernel{Name: "AVX2", MR: 6, NR: 16, Run: kernelAVX2})
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

// kernelAVX2 computes a micro-tile that is cut on the right beside C, and copies what
// there is of it.
func kernelAVX2(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	checkSlices(k, a, rs, ks, b, c, off, rows, cols, 6, 16)
	if cols == 16 {
		kernel6x16(k, &a[0], rs, ks, &b[0], &c[0], off, rows, add)
		return
	}
	var t [6 * 16]float32
	own := [MaxMR]int{0, 16, 32, 48, 64, 80}
	kernel6x16(k, &a[0], rs, ks, &b[0], &t[0], &own, rows, false)
	for r := range rows {
		row := c[off[r] : off[r]+cols]
		for j := range row {
			if add {
				row[j] += t[16*r+j]
			} else {
				row[j] = t[16*r+j]
			}
		}
	}
}

// checkSlices panics if the assembly would leave its slices.
func checkSlices[T any](k int, a []T, rs, ks int, b []T, c []float32, off *[MaxMR]int, rows, cols, mr, nr int) {
	_ = a[(mr-1)*rs+(k-1)*ks]
	_ = b[k*nr-1]
	for _, o := range off[:rows] {
		_ = c[o : o+cols]
	}
}

// kernel12x32 is Kernel.Run with mr = 12, nr = 32; bit j of mask says whether
// column j exists.
//
//go:noescape
func kernel12x32(k int, a *float32, rs, ks int, b, c *float32, off *[MaxMR]int, rows int, mask uint32, add bool)

// kernel6x16 is Kernel.Run with mr = 6, nr = 16, all columns.
//
//go:noescape
func kernel6x16(k int, a *float32, rs, ks int, b, c *float32, off *[MaxMR]int, rows int, add bool)

// int16Kernel12x32 is Int16Kernel.Run with mr = 12, nr = 32; mask as kernel12x32.
//
//go:noescape
func int16Kernel12x32(k int, a *uint32, rs, ks int, b *uint32, c *float32, off *[MaxMR]int, sa, sb *float32, rows int, mask uint32, add bool)
