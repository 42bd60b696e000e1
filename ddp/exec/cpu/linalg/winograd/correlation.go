package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// correlation is the kernel of Forward and GradX. Tiles are worked on in blocks
// small enough for the second cache; a block is transformed, multiplied by each
// panel of filters, and the panel's results are transformed back:
//
//	V (points, tiles, k) · U (panels, points, k, width) = M (points, tiles, width)
//
// If the transformed filters are smaller than the transformed images, they are
// made first, by all threads, and each thread has a V of its own (wide). If
// not, it is the other way round, and nothing as big as the filters is ever
// held whole (deep).
type correlation struct {
	e     *Engine
	s     *scheme
	op    engine.ConvOp
	p     engine.ConvProblem
	list  []correlated
	width int // columns of a panel
	block int // tiles
	deep  bool
	num   numbers // of V and U

	image, weight, dst []float32 // during Run
	scratch            []float32
	c                  *correlated
	packFilters        func(chunk int, ws *workspace)
	wideBlock          func(chunk int, ws *workspace)
	packImages         func(chunk int, ws *workspace)
	deepPanel          func(chunk int, ws *workspace)
}

const (
	// depthBlock is how many numbers of depth are summed up at a time: those of a
	// few rows of V stay in the first cache, those of a panel in the second.
	depthBlock = 256
	// gap is added to rows of V: rows a power of two apart would compete for
	// the same cache lines.
	gap = 16
	// blockBytes is the size of V that a block should have: half of a small
	// second cache.
	blockBytes = 256 << 10
	// minBlock and maxBlock bound the tiles of a block: whole numbers of rows of
	// each micro-kernel. More tiles use a panel of filters more often while it is in
	// the cache.
	minBlock, maxBlock = 24, 96
)

func newCorrelation(e *Engine, s *scheme, op engine.ConvOp, p engine.ConvProblem) *correlation {
	k := &correlation{e: e, s: s, op: op, p: p, width: s.width(), num: s.numbers(p.BF16)}
	if op == engine.Forward {
		k.list = forward(p, s)
	} else {
		k.list = gradX(p, s)
	}
	c := &k.list[0]
	tiles := 0
	for i := range k.list {
		c := &k.list[i]
		tiles = max(tiles, c.tiles.count())
		for _, g := range c.in {
			e.growZeros(g.zeros(&s.input))
		}
	}
	k.block = min(maxBlock, max(minBlock, blockBytes/(4*s.points()*k.row(c))/s.kernel.MR*s.kernel.MR))
	k.block = min(k.block, max(s.kernel.MR, (tiles+e.pool.Threads()-1)/e.pool.Threads()+s.kernel.MR-1)/s.kernel.MR*s.kernel.MR)
	k.deep = tiles*k.row(c) <= k.depth(c)*c.filter.panels()*k.width
	k.packFilters, k.wideBlock, k.packImages, k.deepPanel = k.doPackFilters, k.doWideBlock, k.doPackImages, k.doDeepPanel
	return k
}

func (k *correlation) blocks(c *correlated) int { return (c.tiles.count() + k.block - 1) / k.block }

// depth is the words of a column of U, and row those of a row of V.
func (k *correlation) depth(c *correlated) int { return c.filter.k / k.num.perWord() }
func (k *correlation) row(c *correlated) int   { return k.depth(c) + gap }

// vWords and uWords are the sizes of V of a block and of a panel of U: numbers, and
// their scales, (depth blocks, points, tiles) and (depth blocks, points, width). What
// follows is aligned.
func (k *correlation) vWords(c *correlated) int {
	n := k.s.points()*k.block*k.row(c) + k.num.scales(c.depthBlocks()*k.s.points()*k.block)
	return (n + lanes - 1) / lanes * lanes
}

func (k *correlation) uWords(c *correlated) int {
	return k.s.points()*k.depth(c)*k.width + k.num.scales(c.depthBlocks()*k.s.points()*k.width)
}

// mWords is the size of M of a block.
func (k *correlation) mWords() int { return k.s.points() * (k.block*k.width + gap) }

// shared and private are the floats of scratch memory for all threads, and for
// each.
func (k *correlation) shared() (n int) {
	for i := range k.list {
		c := &k.list[i]
		if k.deep {
			n = max(n, k.blocks(c)*k.vWords(c))
		} else {
			n = max(n, c.filter.panels()*k.uWords(c))
		}
	}
	return n
}

func (k *correlation) private() int {
	big, staged := 0, 0
	for i := range k.list {
		c := &k.list[i]
		staged = max(staged, k.num.stagedTile(k, c))
		if k.deep {
			big = max(big, k.uWords(c))
		} else {
			big = max(big, k.vWords(c))
		}
	}
	return big + staged + k.mWords()
}

func (k *correlation) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.shared() + k.e.pool.Threads()*k.private())
}

func (k *correlation) Close() error {
	k.e.forget()
	k.e = nil
	return nil
}

func (k *correlation) Run(dst, a, b, scratch unsafe.Pointer) error {
	if err := k.e.check(k.op, k.p); err != nil {
		return err
	}
	p := &k.p
	x, w, y := p.N*p.H*p.W*p.C, p.O*p.C*p.KH*p.KW, p.N*p.OH*p.OW*p.O
	if k.op == engine.Forward {
		k.image, k.weight, k.dst = floats(a, x), floats(b, w), floats(dst, y)
	} else {
		k.weight, k.image, k.dst = floats(a, w), floats(b, y), floats(dst, x)
	}
	k.scratch = floats(scratch, k.Scratch()/4)
	for i := range k.list {
		if c := &k.list[i]; c.tiles.count() > 0 {
			k.run(c)
		}
	}
	k.image, k.weight, k.dst, k.scratch, k.c = nil, nil, nil, nil, nil
	return nil
}

func floats(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }

func (k *correlation) run(c *correlated) {
	k.c = c
	alone := k.p.Flops() < smallWork
	if k.deep {
		k.e.pool.Do(alone, k.blocks(c), k.packImages)
		k.e.pool.Do(alone, c.filter.panels(), k.deepPanel)
		return
	}
	k.e.pool.Do(alone, c.filter.panels()*k.num.filterParts(k, c), k.packFilters)
	k.e.pool.Do(alone, k.blocks(c), k.wideBlock)
}

// smallWork is the number of operations below which threads do not pay.
const smallWork = 1 << 20

// own is the private memory of a thread: V or a panel of U, the stage of num, and M.
func (k *correlation) own(ws *workspace) (big, stage, products []float32) {
	all := k.scratch[k.shared()+ws.thread*k.private():][:k.private()]
	m := len(all) - k.mWords()
	t := m - k.num.stagedTile(k, k.c)
	return all[:t], all[t:m], all[m:]
}

// panelOf is panel j of U, if all are shared.
func (k *correlation) panelOf(j int) []float32 {
	n := k.uWords(k.c)
	return k.scratch[j*n:][:n]
}

// doPackFilters makes a part of a panel of U.
func (k *correlation) doPackFilters(chunk int, ws *workspace) {
	parts := k.num.filterParts(k, k.c)
	_, stage, _ := k.own(ws)
	k.num.packFilter(k, ws, k.panelOf(chunk/parts), stage, chunk/parts, chunk%parts)
}

// doWideBlock computes the results of one block of tiles.
func (k *correlation) doWideBlock(chunk int, ws *workspace) {
	v, stage, m := k.own(ws)
	k.packBlock(ws, v, stage, chunk)
	for j := range k.c.filter.panels() {
		k.panel(ws, v, k.panelOf(j), m, chunk, j)
	}
}

// doPackImages makes V of one block of tiles.
func (k *correlation) doPackImages(chunk int, ws *workspace) {
	_, stage, _ := k.own(ws)
	n := k.vWords(k.c)
	k.packBlock(ws, k.scratch[chunk*n:][:n], stage, chunk)
}

// doDeepPanel makes one panel of U, and with it the results of its columns.
func (k *correlation) doDeepPanel(j int, ws *workspace) {
	u, stage, m := k.own(ws)
	n := k.vWords(k.c)
	for part := range k.num.filterParts(k, k.c) {
		k.num.packFilter(k, ws, u, stage, j, part)
	}
	for b := range k.blocks(k.c) {
		k.panel(ws, k.scratch[b*n:][:n], u, m, b, j)
	}
}

// packBlock writes V of one block of tiles.
func (k *correlation) packBlock(ws *workspace, v, stage []float32, block int) {
	for t := range k.size(block) {
		k.num.packTile(k, ws, v, stage, t, block*k.block+t)
	}
}

// transform writes the pixels of a tile, of all lattices, to dst, points step apart.
func (k *correlation) transform(ws *workspace, dst []float32, step, tile int) {
	c, x := k.c, unsafe.Pointer(unsafe.SliceData(k.image))
	image, row, col := c.tiles.at(tile)
	for i, g := range c.in {
		g.transform(ws, &k.s.input, x, image, row, col, 0, g.c, dst[i*lanes:], step, c.filter.groupRows())
	}
}

// size is the number of tiles of a block.
func (k *correlation) size(block int) int {
	return min(k.block, k.c.tiles.count()-block*k.block)
}

// panel computes the results of one block of tiles, in the columns of one panel.
func (k *correlation) panel(ws *workspace, v, u, m []float32, block, j int) {
	n, cols := k.size(block), min(k.width, k.c.filter.n-j*k.width)
	step := k.block*k.width + gap
	for p := range k.s.points() {
		k.multiply(ws, v, u, m[p*step:], p, n, cols)
	}
	for t := range n {
		k.result(ws, m[t*k.width:], step, block*k.block+t, j*k.width, cols)
	}
}

// multiply is M = V · U of point p.
func (k *correlation) multiply(ws *workspace, v, u, m []float32, p, tiles, cols int) {
	points, row, depth := k.s.points(), k.row(k.c), k.depth(k.c)
	sv, su := v[points*k.block*row:k.vWords(k.c)], u[points*depth*k.width:k.uWords(k.c)]
	v, u = v[p*k.block*row:], u[p*depth*k.width:]
	words := depthBlock / k.num.perWord()
	for b := range k.c.depthBlocks() {
		w := b * words
		k.num.multiply(min(words, depth-w), v[w:], row, 1, u[w*k.width:], m, &ws.off, from(sv, (b*points+p)*k.block), from(su, (b*points+p)*k.width), tiles, cols, b > 0)
	}
}

// result transforms the products of one tile, in columns n … n+cols-1, to
// results.
func (k *correlation) result(ws *workspace, m []float32, step, tile, n, cols int) {
	g, l := &k.c.out, &k.s.output
	image, u, v := k.c.tiles.at(tile)
	for i := range k.s.n {
		ws.rows[i] = unsafe.Pointer(&m[i*k.s.n*step])
	}
	ss := strides{across: step, vector: lanes}
	ds := strides{down: g.step * g.w * g.c, across: g.step * g.c, vector: lanes}
	first := ((image*g.h+g.row+g.step*u)*g.w+g.col+g.step*v)*g.c + n
	rows, columns := min(k.s.m, k.c.tiles.rows-u), min(k.s.m, k.c.tiles.cols-v)
	if rows == k.s.m && columns == k.s.m {
		_ = k.dst[first+(k.s.m-1)*(ds.down+ds.across)+cols-1]
		l.square(&ws.pass, &ws.rows, 0, k.s.n, ss, unsafe.Pointer(&k.dst[first]), ds, cols/lanes, ws.tmp)
		return
	}
	whole := strides{down: k.s.m * k.width, across: k.width, vector: lanes}
	l.square(&ws.pass, &ws.rows, 0, k.s.n, ss, unsafe.Pointer(&ws.edge[0]), whole, cols/lanes, ws.tmp)
	for i := range rows {
		for j := range columns {
			copy(k.dst[first+i*ds.down+j*ds.across:][:cols], ws.edge[i*whole.down+j*whole.across:])
		}
	}
}
