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
	in     []lattice // of x
	out    lattice   // of dy
	tiles  tileGrid
	filter filter
	width  int     // columns of a panel
	block  int     // tiles at a time
	parts  int     // ranges of rows of dU
	num    numbers // of V and Z

	x, dy, dw []float32 // during Run
	scratch   []float32 // V, Z, dU, and a stage for each thread
	first     int       // tile
	chunks    int
	pack      func(chunk int, ws *workspace)
	multiply  func(chunk int, ws *workspace)
	finish    func(chunk int, ws *workspace)
}

// gradientBytes is the size of V and Z together that a block should have.
const gradientBytes = 6 << 20

func newGradient(e *Engine, s *scheme, p engine.ConvProblem) *gradient {
	k := &gradient{e: e, s: s, p: p, width: s.width(), in: inputLattices(p), out: pixels(p.OH, p.OW, p.O), filter: forwardFilter(p, s.width()),
		tiles: tileGrid{p.N, p.OH, p.OW, s.m}, num: s.numbers(p.BF16)}
	e.growZeros(max(k.in[0].zeros(&s.input), k.out.zeros(&s.spread)))
	tiles := k.tiles.count()
	tileBytes := 4 * s.points() * (k.row() + k.filter.panels()*s.width()) / k.num.perWord()
	k.block = max(128, gradientBytes/tileBytes)
	if 2*tiles <= 3*k.block {
		k.block = tiles
	} else {
		n := (tiles + k.block - 1) / k.block
		k.block = (tiles + n - 1) / n
	}
	k.block = k.num.gradientBlock(k.block, tiles)
	k.parts = max(1, min(k.filter.k/max(4*s.kernel.MR, k.filter.groupRows()), (4*e.pool.Threads()+k.filter.panels()-1)/k.filter.panels()))
	k.pack, k.multiply, k.finish = k.doPack, k.doMultiply, k.doFinish
	return k
}

// row is the words of a row of V: the micro-kernel may read beyond the last k.
func (k *gradient) row() int { return k.filter.k + gap }

// single says that there is one block: then dU is held by each thread, for the
// rows and columns that it works on.
func (k *gradient) single() bool { return k.block >= k.tiles.count() }

// depth is the rows of words of V and Z, and scaleRows those of their scales.
func (k *gradient) depth() int { return k.block / k.num.perWord() }
func (k *gradient) scaleRows() int {
	return k.num.scales((k.block + k.num.sumTiles() - 1) / k.num.sumTiles())
}

// vWords, zWords and duWords are the sizes of V, (points, depth, row), Z,
// (panels, points, depth, width), and dU. V and Z are followed by their scales.
func (k *gradient) vWords() int {
	return k.s.points()*(k.depth()+k.scaleRows())*k.row() + gap
}

func (k *gradient) zWords() int {
	return k.filter.panels() * k.s.points() * (k.depth() + k.scaleRows()) * k.width
}

func (k *gradient) duWords() int {
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
	return 4 * (k.vWords() + k.zWords() + k.duWords() + k.e.pool.Threads()*k.num.stagedSlab(k))
}

func (k *gradient) Close() error {
	k.e.forget()
	k.e = nil
	return nil
}

func (k *gradient) Run(dst, a, b, scratch unsafe.Pointer) error {
	if err := k.e.check(engine.GradW, k.p); err != nil {
		return err
	}
	p := &k.p
	k.x, k.dy = floats(a, p.N*p.H*p.W*p.C), floats(b, p.N*p.OH*p.OW*p.O)
	k.dw, k.scratch = floats(dst, p.O*p.C*p.KH*p.KW), floats(scratch, k.Scratch()/4)
	alone := p.Flops() < smallWork
	for k.first = 0; k.first < k.tiles.count(); k.first += k.block {
		k.chunks = k.num.gradientChunks(k)
		k.e.pool.Do(alone, k.chunks, k.pack)
		k.e.pool.Do(alone, k.filter.panels()*k.parts, k.multiply)
	}
	if !k.single() {
		k.e.pool.Do(alone, k.filter.panels()*k.parts, k.finish)
	}
	k.x, k.dy, k.dw, k.scratch = nil, nil, nil, nil
	return nil
}

// size is the number of tiles of the block under way, and sumBlocks how many times a
// part of them is summed up.
func (k *gradient) size() int      { return min(k.block, k.tiles.count()-k.first) }
func (k *gradient) sumBlocks() int { return (k.size() + k.num.sumTiles() - 1) / k.num.sumTiles() }

func (k *gradient) doPack(chunk int, ws *workspace) { k.num.packGradient(k, ws, chunk) }

// stage is a thread's memory for packGradient.
func (k *gradient) stage(ws *workspace) []float32 {
	n := k.num.stagedSlab(k)
	return k.scratch[k.vWords()+k.zWords()+k.duWords()+ws.thread*n:][:n]
}

// vAt is V of point p and part b of the block's tiles, from column r on: its words
// and scales.
func (k *gradient) vAt(p, b, r int) (v, scales []float32) {
	all, row := k.scratch[:k.vWords()], k.row()
	if n := k.scaleRows(); n > 0 {
		scales = all[(k.s.points()*k.depth()+p*n+b)*row+r:]
	}
	return all[(p*k.depth()+b*k.num.sumTiles()/k.num.perWord())*row+r:], scales
}

// zAt is panel j of Z of point p and part b of the block's tiles.
func (k *gradient) zAt(p, b, j int) (z, scales []float32) {
	all, point := k.scratch[k.vWords():][:k.zWords()], j*k.s.points()+p
	if n := k.scaleRows(); n > 0 {
		scales = all[(k.filter.panels()*k.s.points()*k.depth()+point*n+b)*k.width:]
	}
	return all[(point*k.depth()+b*k.num.sumTiles()/k.num.perWord())*k.width:], scales
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
	du, rows, base := k.duOf(ws, j), k.filter.k, 0
	if k.single() {
		rows, base = k1-k0, k0
	}
	cols := min(k.width, k.p.O-j*k.width)
	for p := range k.s.points() {
		k.point(ws, du[(p*rows-base)*k.width+k0*k.width:], p, j, k0, k1, cols)
	}
	if k.single() {
		k.filter.unpack(ws, k.s, k.dw, du, rows, j, k0, k1)
	}
}

// point is rows [k0,k1) of panel j of dU (+)= Vᵀ · Z of point p.
func (k *gradient) point(ws *workspace, du []float32, p, j, k0, k1, cols int) {
	per, n := k.num.perWord(), k.num.sumTiles()
	for b := range k.sumBlocks() {
		v, sv := k.vAt(p, b, k0)
		z, sz := k.zAt(p, b, j)
		depth := (min(n, k.size()-b*n) + per - 1) / per
		k.num.multiply(depth, v, 1, k.row(), z, du, &ws.off, sv, sz, k1-k0, cols, k.first > 0 || b > 0)
	}
}

// duOf is where panel j of dU is: (points, rows, width).
func (k *gradient) duOf(ws *workspace, j int) []float32 {
	all := k.scratch[k.vWords()+k.zWords():][:k.duWords()]
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
	k.filter.unpack(ws, k.s, k.dw, k.duOf(ws, j)[k0*k.width:], k.filter.k, j, k0, k1)
}
