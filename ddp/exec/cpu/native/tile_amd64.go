//go:build !noasm

package native

import "golang.org/x/sys/cpu"

// tiles are the micro-kernels that this CPU can run, best first.
func tiles() (ts []tile) {
	if cpu.X86.HasAVX512F {
		ts = append(ts, tile{name: "AVX-512", mr: 12, nr: 32, run: tileAVX512})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		ts = append(ts, tile{name: "AVX2", mr: 6, nr: 16, run: tileAVX2})
	}
	return append(ts, genericTile)
}

func tileAVX512(k int, a []float32, rs, ks int, b, c []float32, off *[maxMR]int, rows, cols int, add bool) {
	checkTile(k, a, rs, ks, b, c, off, rows, cols, 12, 32)
	tile12x32(k, &a[0], rs, ks, &b[0], &c[0], off, rows, uint32(1<<cols-1), add)
}

// tileAVX2 computes a tile that is cut on the right in a tile of its own.
func tileAVX2(k int, a []float32, rs, ks int, b, c []float32, off *[maxMR]int, rows, cols int, add bool) {
	checkTile(k, a, rs, ks, b, c, off, rows, cols, 6, 16)
	if cols == 16 {
		tile6x16(k, &a[0], rs, ks, &b[0], &c[0], off, rows, add)
		return
	}
	var t [6 * 16]float32
	own := [maxMR]int{0, 16, 32, 48, 64, 80}
	tile6x16(k, &a[0], rs, ks, &b[0], &t[0], &own, rows, false)
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

// checkTile panics if the assembly would leave its slices.
func checkTile(k int, a []float32, rs, ks int, b, c []float32, off *[maxMR]int, rows, cols, mr, nr int) {
	_ = a[(mr-1)*rs+(k-1)*ks]
	_ = b[k*nr-1]
	for _, o := range off[:rows] {
		_ = c[o : o+cols]
	}
}

// tile12x32 is tile.run with mr = 12, nr = 32; bit j of mask says whether
// column j exists.
//
//go:noescape
func tile12x32(k int, a *float32, rs, ks int, b, c *float32, off *[maxMR]int, rows int, mask uint32, add bool)

// tile6x16 is tile.run with mr = 6, nr = 16, all columns.
//
//go:noescape
func tile6x16(k int, a *float32, rs, ks int, b, c *float32, off *[maxMR]int, rows int, add bool)
