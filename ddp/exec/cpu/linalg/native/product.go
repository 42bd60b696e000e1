package native

import (
	"ebtrain/ddp/exec/cpu/linalg/micro"
	"ebtrain/ddp/exec/cpu/threads"
)

const (
	// depthBlock is about the depth of a block of sums: the rows of A of a
	// micro-tile (12×256 floats) stay in the first cache, a block of B in the second.
	depthBlock = 256
	// maxDepth is the depth of the deepest block, see depths.
	maxDepth = depthBlock + depthBlock/2
	// rowStride is the distance of rows in the buffer of A: not a power
	// of two, or rows would compete for the same cache lines.
	rowStride = maxDepth + 16
	// columnBlock is how many columns of B are worked on at a time.
	columnBlock = 1024
	// chunksPerThread is into how many pieces per thread work is cut.
	chunksPerThread = 4
	// smallWork is the number of multiply-adds below which threads do not pay.
	smallWork = 1 << 19
	// fewTiles is how many micro-tiles may read a panel of B where it lies: more gain by
	// a copy.
	fewTiles = 16
	// aliasing is a distance in floats of which multiples compete for a few lines of the
	// first cache: half of what each of its ways holds.
	aliasing = 512
)

func panelBlock(mk micro.Kernel) int { return columnBlock / mk.NR }

// depths is the number of blocks that a depth is cut into, as equal as can be.
func depths(k int) int { return max(1, (k+depthBlock/2)/depthBlock) }

// rowSource is the operand A.
type rowSource interface {
	// place has the tile of ws read A[m:m+rows, k0:k1], where it lies or in ws.a.
	place(ws *workspace, mk *micro.Kernel, data []float32, m, rows, k0, k1 int)
}

// product is C (m,n) = A (m,k) · B (k,n), with rows of C anywhere.
type product struct {
	m, n, k int
	a       rowSource
	b       columns
	c       grid
}

// shape is that of its micro-tiles.
func (p *product) shape(mk *micro.Kernel) (mr, nr int) { return mk.Shape(p.n) }

// tiles is the number of micro-tiles of C, down and across.
func (p *product) tiles(mk *micro.Kernel) (rows, panels int) {
	mr, nr := p.shape(mk)
	return (p.m + mr - 1) / mr, (p.n + nr - 1) / nr
}

// inPanels is the number of floats of all of B in panels.
func (p *product) inPanels(mk *micro.Kernel) int {
	_, nr := p.shape(mk)
	_, panels := p.tiles(mk)
	return (panels*nr*p.k + 15) &^ 15
}

// packed is inPanels, or 0 where every panel is read in place.
func (p *product) packed(mk *micro.Kernel) int {
	mr, nr := p.shape(mk)
	_, panels := p.tiles(mk)
	if p.m <= fewTiles*mr && p.b.lie(mk, nr) && p.b.lie(mk, p.n-(panels-1)*nr) {
		return 0
	}
	return p.inPanels(mk)
}

// inPlace is columns.inPlace of panel j, if few micro-tiles read it.
func (p *product) inPlace(mk *micro.Kernel, b []float32, j int) (panel []float32, step int, ok bool) {
	mr, nr := p.shape(mk)
	if p.m > fewTiles*mr {
		return nil, 0, false
	}
	return p.b.inPlace(mk, b, j*nr, min(nr, p.n-j*nr))
}

// packPanels writes panels [lo,hi) of B, panel j to packed[j·k·nr:].
func (p *product) packPanels(mk *micro.Kernel, ws *workspace, packed, b []float32, lo, hi int) {
	_, nr := p.shape(mk)
	for j := lo; j < hi; j++ {
		if _, _, ok := p.inPlace(mk, b, j); !ok {
			p.b.pack(&ws.turn, packed[j*p.k*nr:(j+1)*p.k*nr], b, j*nr, min(nr, p.n-j*nr), nr)
		}
	}
}

// microTiles computes the micro-tiles [m0,m1) × [p0,p1) of C from B, packed where it
// cannot be read in place: panel p begins at p·k·nr and holds k rows of nr.
func (p *product) microTiles(mk *micro.Kernel, ws *workspace, o operands, packed []float32, m0, m1, p0, p1 int) {
	if p.k == 0 {
		p.zero(mk, ws, o.dst, m0, m1, p0, p1)
		return
	}
	n := depths(p.k)
	for pb := p0; pb < p1; pb += panelBlock(*mk) {
		for d := range n {
			k0, k1 := threads.Part(p.k, d, n)
			p.block(mk, ws, o, packed, m0, m1, pb, min(pb+panelBlock(*mk), p1), k0, k1)
		}
	}
	ws.forget()
}

// block adds depths [k0,k1) to micro-tiles.
func (p *product) block(mk *micro.Kernel, ws *workspace, o operands, packed []float32, m0, m1, p0, p1, k0, k1 int) {
	mr, nr := p.shape(mk)
	t := &ws.tile
	t.K, t.Segments, t.Add = k1-k0, 1, k0 > 0
	for mt := m0; mt < m1; mt++ {
		m := mt * mr
		t.Rows = min(mr, p.m-m)
		p.a.place(ws, mk, o.a, m, t.Rows, k0, k1)
		first := p.c.locate(ws, m, t.Rows)
		for j := p0; j < p1; j++ {
			if b, step, ok := p.inPlace(mk, o.b, j); ok {
				t.B, t.BS = b[k0*step:], step
			} else {
				t.B, t.BS = packed[(j*p.k+k0)*nr:], nr
			}
			t.C, t.Cols = o.dst[first+j*nr:], min(nr, p.n-j*nr)
			mk.Sum(t)
		}
	}
}

// zero is the product over no k.
func (p *product) zero(mk *micro.Kernel, ws *workspace, dst []float32, m0, m1, p0, p1 int) {
	mr, nr := p.shape(mk)
	for m := m0 * mr; m < min(m1*mr, p.m); m++ {
		first := p.c.locate(ws, m, 1)
		clear(dst[first+p0*nr : first+min(p1*nr, p.n)])
	}
}

// grid says where rows of C begin: row m is pixel (i,j) of image n, in
// row-major order over (n,i,j).
type grid struct {
	h, w                  int // pixels of an image
	base, image, row, col int // steps in C
}

// locate has rows of C be rows m … m+rows-1 of the grid: it returns where C begins, and
// says in ws.off where its rows do.
func (g *grid) locate(ws *workspace, m, rows int) (first int) {
	n, i, j := 0, 0, m
	if g.h > 1 || m >= g.w {
		n, i, j = m/(g.h*g.w), m/g.w%g.h, m%g.w
	}
	first = g.base + n*g.image + i*g.row + j*g.col
	if j+rows <= g.w {
		ws.spread(g.col)
		return first
	}
	ws.apart = 0
	for r := range rows {
		ws.off[r] = g.base + n*g.image + i*g.row + j*g.col - first
		if j++; j == g.w {
			j = 0
			if i++; i == g.h {
				i = 0
				n++
			}
		}
	}
	return first
}
