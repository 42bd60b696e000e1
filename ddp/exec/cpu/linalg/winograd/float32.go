package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/threads"
)

// float32s are numbers that are transformed where they stay.
type float32s struct{ kernel micro.Kernel }

func (*float32s) perWord() int   { return 1 }
func (*float32s) scales(int) int { return 0 }

func (n *float32s) multiply(depth int, a []float32, rs, ks int, b, c []float32, off *[micro.MaxMR]int, _, _ []float32, rows, cols int, add bool) {
	mr, width := n.kernel.MR, n.kernel.NR
	for r := 0; r < rows; r += mr {
		n.kernel.Run(depth, a[r*rs:], rs, ks, b, c[r*width:], off, min(mr, rows-r), cols, add)
	}
}

func (*float32s) stagedTile(*correlation, *correlated) int { return 0 }

func (*float32s) packTile(k *correlation, ws *workspace, v, _ []float32, t, tile int) {
	k.transform(ws, v[t*k.row(k.c):], k.block*k.row(k.c), tile)
}

// filterParts are as many as keep all threads busy.
func (*float32s) filterParts(k *correlation, c *correlated) int {
	f := &c.filter
	return min(f.k/f.groupRows(), (8*k.e.pool.Threads()+f.panels()-1)/f.panels())
}

func (n *float32s) packFilter(k *correlation, ws *workspace, u, _ []float32, j, part int) {
	f := &k.c.filter
	k0, k1 := threads.Part(f.k/f.groupRows(), part, n.filterParts(k, k.c))
	k0, k1 = k0*f.groupRows(), k1*f.groupRows()
	f.pack(ws, k.s, u[k0*k.width:], f.k*k.width, k.weight, j, k0, k1)
}

func (*float32s) sumTiles() int                  { return depthBlock }
func (*float32s) gradientBlock(block, _ int) int { return block }
func (*float32s) stagedSlab(*gradient) int       { return 0 }
func (*float32s) gradientChunks(k *gradient) int { return min(k.size(), 8*k.e.pool.Threads()) }

// packGradient transforms some tiles of x and dy.
func (*float32s) packGradient(k *gradient, ws *workspace, chunk int) {
	v, z := k.scratch[:k.vWords()], k.scratch[k.vWords():][:k.zWords()]
	x, dy := unsafe.Pointer(unsafe.SliceData(k.x)), unsafe.Pointer(unsafe.SliceData(k.dy))
	t0, t1 := threads.Part(k.size(), chunk, k.chunks)
	for t := t0; t < t1; t++ {
		image, r, c := k.tiles.at(k.first + t)
		for i, g := range k.in {
			g.transform(ws, &k.s.input, x, image, r, c, 0, g.c, v[t*k.row()+i*lanes:], k.block*k.row(), k.filter.groupRows())
		}
		for j := range k.filter.panels() {
			k.out.transform(ws, &k.s.spread, dy, image, r, c, j*k.width, min(k.p.O, (j+1)*k.width), z[(j*k.s.points()*k.block+t)*k.width:], k.block*k.width, lanes)
		}
	}
}
