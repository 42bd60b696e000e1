//go:build (amd64 || arm64) && !noasm

package micro

// runKernel6x16 computes a micro-tile that is cut on the right beside C, and copies what
// there is of it.
func runKernel6x16(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
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

// kernel6x16 is Kernel.Run with mr = 6, nr = 16, all columns.
//
//go:noescape
func kernel6x16(k int, a *float32, rs, ks int, b, c *float32, off *[MaxMR]int, rows int, add bool)
