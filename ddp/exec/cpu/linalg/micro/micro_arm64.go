//go:build !noasm

package micro

// All are the kernels that this CPU can run, best first.
func All() []Kernel {
	return []Kernel{{Name: "NEON", MR: 6, NR: 16, Step: 6, Sum: sumNEON, Run: runNEON}, generic}
}

// Int16 is the kernel of 16-bit integers: there is none.
func Int16() (k Int16Kernel, ok bool) { return k, false }

func runNEON(k int, a []float32, rs, ks int, b, c []float32, off *[MaxMR]int, rows, cols int, add bool) {
	t := Tile{A: a, RS: rs, KS: ks, B: b, BS: 16, C: c, Off: off, K: k, Segments: 1, Rows: rows, Cols: cols, Add: add}
	sumNEON(&t)
}

func sumNEON(t *Tile) {
	t.check(6, 16)
	if t.Cols == 16 {
		sum6x16(t)
		return
	}
	var p patch
	u := p.of(t, 16)
	sum6x16(&u)
	p.copy(t, 16)
}

// sum6x16 is Kernel.Sum of up to 6 rows of 16 columns.
//
//go:noescape
func sum6x16(t *Tile)
