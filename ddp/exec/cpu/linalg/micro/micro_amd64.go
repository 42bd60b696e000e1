//go:build !noasm

package micro

import "golang.org/x/sys/cpu"

// All are the kernels that this CPU can run, best first.
func All() (ks []Kernel) {
	if cpu.X86.HasAVX512F {
		ks = append(ks, Kernel{Name: "AVX-512", MR: 12, NR: 32, Narrow: 16, Tall: 24, Step: 4, Masks: true, Sum: sumAVX512, Run: runAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ks = append(ks, Kernel{Name: "AVX2", MR: 6, NR: 16, Narrow: 8, Tall: 12, Step: 3, Sum: sumAVX2, Run: runAVX2})
	}
	return append(ks, generic)
}

// Int16 is the kernel of 16-bit integers, if the CPU multiplies and adds pairs of
// them as fast as single float32 (AVX512_VNNI).
func Int16() (k Int16Kernel, ok bool) {
	return Int16Kernel{MR: 12, NR: 32, Run: kernelVNNI}, cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VNNI
}

func kernelVNNI(k int, a []uint32, rs, ks int, b []uint32, c []float32, off *[MaxMR]int, sa, sb []float32, rows, cols int, add bool) {
	checkInt16(k, a, rs, ks, b, c, off, rows, cols)
	_, _ = sa[rows-1], sb[31]
	int16Kernel12x32(k, &a[0], rs, ks, &b[0], &c[0], off, &sa[0], &sb[0], rows, uint32(1<<cols-1), add)
}

func runAVX512(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	t := Tile{A: a, RS: rs, KS: ks, B: b, BS: 32, C: c, Off: off, K: k, Segments: 1, Rows: rows, Cols: cols, Add: add}
	sumAVX512(&t)
}

func sumAVX512(t *Tile) {
	t.check(4, 1)
	if t.Cols <= 16 {
		narrowAVX512(t)
		return
	}
	wideAVX512(t)
}

// wideAVX512 is Kernel.Sum of up to 12 rows of up to 32 columns.
//
//go:noescape
func wideAVX512(t *Tile)

// narrowAVX512 is Kernel.Sum of up to 24 rows of up to 16 columns.
//
//go:noescape
func narrowAVX512(t *Tile)

func runAVX2(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	t := Tile{A: a, RS: rs, KS: ks, B: b, BS: 16, C: c, Off: off, K: k, Segments: 1, Rows: rows, Cols: cols, Add: add}
	sumAVX2(&t)
}

func sumAVX2(t *Tile) {
	t.check(3, 8)
	switch {
	case t.Cols == 16:
		wideAVX2(t)
	case t.Cols > 8:
		var p patch
		u := p.of(t, 16)
		wideAVX2(&u)
		p.copy(t, 16)
	case t.Cols == 8:
		narrowAVX2(t)
	default:
		var p patch
		u := p.of(t, 8)
		narrowAVX2(&u)
		p.copy(t, 8)
	}
}

// wideAVX2 is Kernel.Sum of up to 6 rows of 16 columns.
//
//go:noescape
func wideAVX2(t *Tile)

// narrowAVX2 is Kernel.Sum of up to 12 rows of 8 columns.
//
//go:noescape
func narrowAVX2(t *Tile)

// int16Kernel12x32 is Int16Kernel.Run with mr = 12, nr = 32; bit j of mask says whether
// column j exists.
//
//go:noescape
func int16Kernel12x32(k int, a *uint32, rs, ks int, b *uint32, c *float32, off *[MaxMR]int, sa, sb *float32, rows int, mask uint32, add bool)

// checkInt16 panics if the assembly would leave its slices.
func checkInt16(k int, a []uint32, rs, ks int, b []uint32, c []float32, off *[MaxMR]int, rows, cols int) {
	_ = a[11*rs+(k-1)*ks]
	_ = b[k*32-1]
	for _, o := range off[:rows] {
		_ = c[o : o+cols]
	}
}
