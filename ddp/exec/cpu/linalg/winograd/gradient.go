package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
)

// gradient is the kernel of GradW. For each point of the scheme,
//
//	dU (k, n) = Σ_tiles V (tiles, k)ᵀ · Z (tiles, n)
//
// with V the transformed tiles of x and Z those of dy. So many tiles at a time
// are transformed by all threads as stay in the last cache, and then
// multiplied, each thread on rows and columns of dU of its own.
type gradient struct {
	e      *Engine
	s      *scheme
	p      engine.ConvProblem
	x      []lattice
	dy     lattice
	tiling tiling
	filter filter
	width  int // columns of a panel
	block  int // tiles at a time
	parts  int // ranges of rows of dU
	// integers is nil if V and Z are float32; see gradient_scale.go.
	integers *integers

	a, b, dst []float32 // during Run
	scratch   []float32
	first     int // tile
	chunks    int
	pack      func(chunk int, ws *workspace)
	multiply  func(chunk int, ws *workspace)
	finish    func(chunk int, ws *workspace)
}

// gradientBytes is the size of V and Z together that a block should have.
const gradientBytes = 6 << 20

func newGradient(e *Engine, s *scheme, p engine.ConvProblem) *gradient {
	k := &gradient{e: e, s: s, p: p, width: s.width(), x: imagesSeen(p), dy: pixels(p.OH, p.OW, p.O), filter: weightAsSeen(p, s.width()),
		tiling: tiling{p.N, p.OH, p.OW, s.m}}
	if p.BF16 {
		k.integers = s.integers
	}
	e.growZeros(max(k.x[0].zeros(&s.input), k.dy.zeros(&s.spread)))
	tiles := k.tiling.tiles()
	tileBytes := 4 * s.points() * (k.row() + k.filter.panels()*s.width())
	if k.integers != nil {
		tileBytes /= 2
	}
	k.block = max(128, gradientBytes/tileBytes)
	if 2*tiles <= 3*k.block {
		k.block = tiles
	} else {
		n := (tiles + k.block - 1) / k.block
		k.block = (tiles + n - 1) / n
	}
	if k.integers != nil {
		k.block = min((k.block+slabTiles-1)/slabTiles*slabTiles, tiles+tiles%2)
	}
	k.parts = max(1, min(k.filter.k/max(4*s.tile.MR, k.filter.groupRows()), (4*e.pool.Threads()+k.filter.panels()-1)/k.filter.panels()))
	k.pack, k.multiply, k.finish = k.doPack, k.doMultiply, k.doFinish
	if k.integers != nil {
		k.pack = k.doPackIntegers
	}
	return k
}

// row is the words of a row of V: the micro-kernel may read beyond the last k.
func (k *gradient) row() int { return k.filter.k + gap }

// single says that there is one block: then dU is held by each thread, for the
// rows and columns that it works on.
func (k *gradient) single() bool { return k.block >= k.tiling.tiles() }

// depth is the rows of V and Z, of float32 or of pairs of integers.
func (k *gradient) depth() int {
	if k.integers != nil {
		return k.block / 2
	}
	return k.block
}

// seen, changes and sums are the words of V, Z and dU.
func (k *gradient) seen() int {
	return k.s.points()*(k.depth()+k.scales())*k.row() + gap
}

func (k *gradient) changes() int {
	return k.filter.panels() * k.s.points() * (k.depth() + k.scales()) * k.width
}

func (k *gradient) sums() int {
	if k.single() {
		groups := k.filter.k / k.filter.groupRows()
		rows := (groups + k.parts - 1) / k.parts * k.filter.groupRows()
		return k.e.pool.Threads() * k.s.points() * rows * k.width
	}
	return k.filter.panels() * k.filter.floats(k.s)
}

func (k *gradient) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.seen() + k.changes() + k.sums() + k.e.pool.Threads()*k.staged())
}

func (k *gradient) Close() error {
	k.e = nil
	return nil
}

func (k *gradient) Run(dst, a, b, scratch unsafe.Pointer) error {
	if err := k.e.check(engine.GradW, k.p); err != nil {
		return err
	}
	p := &k.p
	k.a, k.b = floats(a, p.N*p.H*p.W*p.C), floats(b, p.N*p.OH*p.OW*p.O)
	k.dst, k.scratch = floats(dst, p.O*p.C*p.KH*p.KW), floats(scratch, k.Scratch()/4)
	alone := p.Flops() < smallWork
	for k.first = 0; k.first < k.tiling.tiles(); k.first += k.block {
		k.chunks = min(k.size(), 8*k.e.pool.Threads())
		if k.integers != nil {
			k.chunks = k.depthBlocks() * (k.slabs() + k.filter.panels())
		}
		k.e.pool.Do(alone, k.chunks, k.pack)
		k.e.pool.Do(alone, k.filter.panels()*k.parts, k.multiply)
	}
	if !k.single() {
		k.e.pool.Do(alone, k.filter.panels()*k.parts, k.finish)
	}
	k.a, k.b, k.dst, k.scratch = nil, nil, nil, nil
	return nil
}

// size is the number of tiles of the block under way.
func (k *gradient) size() int { return min(k.block, k.tiling.tiles()-k.first) }

// doPack transforms some tiles of x and dy.
func (k *gradient) doPack(chunk int, ws *workspace) {
	v, z := k.scratch[:k.seen()], k.scratch[k.seen():][:k.changes()]
	x, dy := unsafe.Pointer(unsafe.SliceData(k.a)), unsafe.Pointer(unsafe.SliceData(k.b))
	t0, t1 := threads.Part(k.size(), chunk, k.chunks)
	for t := t0; t < t1; t++ {
		image, r, c := k.tiling.at(k.first + t)
		for i, g := range k.x {
			g.transform(ws, &k.s.input, x, image, r, c, 0, g.c, v[t*k.row()+i*lanes:], k.block*k.row(), k.filter.groupRows())
		}
		for j := range k.filter.panels() {
			k.dy.transform(ws, &k.s.spread, dy, image, r, c, j*k.width, min(k.p.O, (j+1)*k.width), z[(j*k.s.points()*k.block+t)*k.width:], k.block*k.width, lanes)
		}
	}
}

// part is the panel and the rows of dU that a chunk works on.
func (k *gradient) part(chunk int) (panel, k0, k1 int) {
	rows := k.filter.groupRows()
	k0, k1 = threads.Part(k.filter.k/rows, chunk%k.parts, k.parts)
	return chunk / k.parts, k0 * rows, k1 * rows
}

// doMultiply adds a block of tiles to rows [k0,k1) of a panel of dU.
func (k *gradient) doMultiply(chunk int, ws *workspace) {
	j, k0, k1 := k.part(chunk)
	du, rows, base := k.sumsOf(ws, j), k.filter.k, 0
	if k.single() {
		rows, base = k1-k0, k0
	}
	cols := min(k.width, k.p.O-j*k.width)
	for p := range k.s.points() {
		sums := du[(p*rows-base)*k.width+k0*k.width:]
		if k.integers != nil {
			k.pointIntegers(ws, sums, p, j, k0, k1, cols)
		} else {
			k.point(ws, sums, p, j, k0, k1, cols)
		}
	}
	if k.single() {
		k.filter.unpack(ws, k.s, k.dst, du, rows, j, k0, k1)
	}
}

// point is rows [k0,k1) of panel j of dU (+)= Vᵀ · Z of point p.
func (k *gradient) point(ws *workspace, du []float32, p, j, k0, k1, cols int) {
	mr, v, z := k.s.tile.MR, k.scratch[p*k.block*k.row():], k.scratch[k.seen()+(j*k.s.points()+p)*k.block*k.width:]
	for t := 0; t < k.size(); t += depthBlock {
		d := min(depthBlock, k.size()-t)
		for r := k0; r < k1; r += mr {
			k.s.tile.Run(d, v[t*k.row()+r:], 1, k.row(), z[t*k.width:], du[(r-k0)*k.width:], &ws.off, min(mr, k1-r), cols, k.first+t > 0)
		}
	}
}

// sumsOf is where panel j of dU is: (points, rows, width).
func (k *gradient) sumsOf(ws *workspace, j int) []float32 {
	all := k.scratch[k.seen()+k.changes():][:k.sums()]
	if k.single() {
		n := len(all) / k.e.pool.Threads()
		return all[ws.thread*n:][:n]
	}
	n := k.filter.floats(k.s)
	return all[j*n:][:n]
}

// doFinish transforms rows of a panel of dU to dw.
func (k *gradient) doFinish(chunk int, ws *workspace) {
	j, k0, k1 := k.part(chunk)
	k.filter.unpack(ws, k.s, k.dst, k.sumsOf(ws, j)[k0*k.width:], k.filter.k, j, k0, k1)
}
