package winograd

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/threads"
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
	// integers is nil if V and U are float32; see correlation_scale.go.
	integers *integers

	image, weight, dst []float32 // during Run
	scratch            []float32
	c                  *correlated
	chunks             int
	packFilters        func(chunk int, ws *workspace)
	wideBlock          func(chunk int, ws *workspace)
	packImages         func(chunk int, ws *workspace)
	deepPanel          func(chunk int, ws *workspace)
}

const (
	// depthBlock is the depth of a block of sums of float32.
	depthBlock = 256
	// gap is added to rows of V: rows a power of two apart would compete for
	// the same cache lines.
	gap = 16
	// blockBytes is the size of V that a block should have: half of a small
	// second cache.
	blockBytes = 256 << 10
	// minBlock and maxBlock bound the tiles of a block, in whole tiles of each
	// micro-kernel. More tiles use a panel of filters more often while it is in
	// the cache.
	minBlock, maxBlock = 24, 96
)

func newCorrelation(e *Engine, s *scheme, op engine.ConvOp, p engine.ConvProblem) *correlation {
	k := &correlation{e: e, s: s, op: op, p: p, width: s.width()}
	if p.BF16 {
		k.integers = s.integers
	}
	if op == engine.Forward {
		k.list = forward(p, s)
	} else {
		k.list = gradX(p, s)
	}
	c := &k.list[0]
	tiles := 0
	for i := range k.list {
		c := &k.list[i]
		tiles = max(tiles, c.tiling.tiles())
		for _, g := range c.in {
			e.growZeros(g.zeros(&s.input))
		}
	}
	k.block = min(maxBlock, max(minBlock, blockBytes/(4*s.points()*k.row(c))/s.tile.MR*s.tile.MR))
	k.block = min(k.block, max(s.tile.MR, (tiles+e.pool.Threads()-1)/e.pool.Threads()+s.tile.MR-1)/s.tile.MR*s.tile.MR)
	k.deep = tiles*k.row(c) <= k.depth(c)*c.filter.panels()*s.width()
	k.packFilters, k.wideBlock, k.packImages, k.deepPanel = k.doPackFilters, k.doWideBlock, k.doPackImages, k.doDeepPanel
	return k
}

func (k *correlation) blocks(c *correlated) int { return (c.tiling.tiles() + k.block - 1) / k.block }

// depth is the words of a row of V or column of U.
func (k *correlation) depth(c *correlated) int {
	if k.integers != nil {
		return c.filter.k / 2
	}
	return c.filter.k
}

// row, images and filters are the words of a row of V, of V of a block, and of a
// panel of U.
func (k *correlation) row(c *correlated) int { return k.depth(c) + gap }

func (k *correlation) images(c *correlated) int {
	return k.s.points()*k.block*k.row(c) + k.imageScales(c)
}

func (k *correlation) filters(c *correlated) int {
	return k.s.points()*k.depth(c)*k.width + k.filterScales(c)
}

// products is the floats of M of a block.
func (k *correlation) products() int { return k.s.points() * (k.block*k.width + gap) }

// shared and private are the floats of scratch memory for all threads, and for
// each.
func (k *correlation) shared() (n int) {
	for i := range k.list {
		c := &k.list[i]
		if k.deep {
			n = max(n, k.blocks(c)*k.images(c))
		} else {
			n = max(n, c.filter.panels()*k.filters(c))
		}
	}
	return n
}

func (k *correlation) private() int {
	big, staged := 0, 0
	for i := range k.list {
		c := &k.list[i]
		staged = max(staged, k.staged(c))
		if k.deep {
			big = max(big, k.filters(c))
		} else {
			big = max(big, k.images(c))
		}
	}
	return big + staged + k.products()
}

func (k *correlation) Scratch() int {
	if k.e == nil || k.e.pool == nil {
		return 0
	}
	return 4 * (k.shared() + k.e.pool.Threads()*k.private())
}

func (k *correlation) Close() error {
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
		if c := &k.list[i]; c.tiling.tiles() > 0 {
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
		k.chunks = k.blocks(c)
		k.e.pool.Do(alone, k.chunks, k.packImages)
		k.e.pool.Do(alone, c.filter.panels(), k.deepPanel)
		return
	}
	k.chunks = k.filterChunks(c)
	k.e.pool.Do(alone, k.chunks, k.packFilters)
	k.e.pool.Do(alone, k.blocks(c), k.wideBlock)
}

// smallWork is the number of operations below which threads do not pay.
const smallWork = 1 << 20

// own is the private memory of a thread: V or a panel of U, what is staged, and M.
func (k *correlation) own(ws *workspace) (big, stage, products []float32) {
	all := k.scratch[k.shared()+ws.thread*k.private():][:k.private()]
	m := len(all) - k.products()
	t := m - k.staged(k.c)
	return all[:t], all[t:m], all[m:]
}

// panelOf is panel j of U, if all are shared.
func (k *correlation) panelOf(j int) []float32 {
	n := k.filters(k.c)
	return k.scratch[j*n:][:n]
}

// filterChunks is into how many parts the work of packFilters is cut.
func (k *correlation) filterChunks(c *correlated) int {
	if k.integers != nil {
		return c.filter.panels() * k.depthBlocks(c)
	}
	return min(c.filter.k/c.filter.groupRows(), 8*k.e.pool.Threads())
}

// doPackFilters makes a part of all panels of U: some rows, or of integers a block
// of depth of a panel.
func (k *correlation) doPackFilters(chunk int, ws *workspace) {
	f := &k.c.filter
	if k.integers != nil {
		blocks := k.depthBlocks(k.c)
		_, stage, _ := k.own(ws)
		k.packIntegers(ws, k.panelOf(chunk/blocks), stage, chunk/blocks, chunk%blocks)
		return
	}
	k0, k1 := threads.Part(f.k/f.groupRows(), chunk, k.chunks)
	k0, k1 = k0*f.groupRows(), k1*f.groupRows()
	for j := range f.panels() {
		f.pack(ws, k.s, k.panelOf(j)[k0*k.width:], f.k*k.width, k.weight, j, k0, k1)
	}
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
	n := k.images(k.c)
	k.packBlock(ws, k.scratch[chunk*n:][:n], stage, chunk)
}

// doDeepPanel makes one panel of U, and with it the results of its columns.
func (k *correlation) doDeepPanel(j int, ws *workspace) {
	u, stage, m := k.own(ws)
	f, n := &k.c.filter, k.images(k.c)
	if k.integers != nil {
		for b := range k.depthBlocks(k.c) {
			k.packIntegers(ws, u, stage, j, b)
		}
	} else {
		f.pack(ws, k.s, u, f.k*k.width, k.weight, j, 0, f.k)
	}
	for b := range k.blocks(k.c) {
		k.panel(ws, k.scratch[b*n:][:n], u, m, b, j)
	}
}

// packBlock writes V of one block of tiles.
func (k *correlation) packBlock(ws *workspace, v, stage []float32, block int) {
	c := k.c
	x := unsafe.Pointer(unsafe.SliceData(k.image))
	for t := range k.size(block) {
		dst, step := v[t*k.row(c):], k.block*k.row(c)
		if k.integers != nil {
			dst, step = stage, c.filter.k+gap
		}
		image, r0, c0 := c.tiling.at(block*k.block + t)
		for i, g := range c.in {
			g.transform(ws, &k.s.input, x, image, r0, c0, 0, g.c, dst[i*lanes:], step, c.filter.groupRows())
		}
		if k.integers != nil {
			k.scaleTile(ws, v, stage, t)
		}
	}
}

// size is the number of tiles of a block.
func (k *correlation) size(block int) int {
	return min(k.block, k.c.tiling.tiles()-block*k.block)
}

// panel computes the results of one block of tiles, in the columns of one panel.
func (k *correlation) panel(ws *workspace, v, u, m []float32, block, j int) {
	n, cols := k.size(block), min(k.width, k.c.filter.n-j*k.width)
	step := k.block*k.width + gap
	for p := range k.s.points() {
		if k.integers != nil {
			k.multiplyIntegers(ws, v, u, m[p*step:], p, n, cols)
		} else {
			k.multiply(ws, v, u, m[p*step:], p, n, cols)
		}
	}
	for t := range n {
		k.result(ws, m[t*k.width:], step, block*k.block+t, j*k.width, cols)
	}
}

// multiply is M = V · U of point p.
func (k *correlation) multiply(ws *workspace, v, u, m []float32, p, tiles, cols int) {
	row, depth, mr := k.row(k.c), k.c.filter.k, k.s.tile.MR
	v, u = v[p*k.block*row:], u[p*depth*k.width:]
	for k0 := 0; k0 < depth; k0 += depthBlock {
		d := min(depthBlock, depth-k0)
		for t := 0; t < tiles; t += mr {
			k.s.tile.Run(d, v[t*row+k0:], row, 1, u[k0*k.width:], m[t*k.width:], &ws.off, min(mr, tiles-t), cols, k0 > 0)
		}
	}
}

// result transforms the products of one tile, in columns n … n+cols-1, to
// results.
func (k *correlation) result(ws *workspace, m []float32, step, tile, n, cols int) {
	g, l := &k.c.out, &k.s.output
	image, u, v := k.c.tiling.at(tile)
	for i := range k.s.n {
		ws.rows[i] = unsafe.Pointer(&m[i*k.s.n*step])
	}
	ss := strides{across: step, block: lanes}
	ds := strides{down: g.step * g.w * g.c, across: g.step * g.c, block: lanes}
	first := ((image*g.h+g.row+g.step*u)*g.w+g.col+g.step*v)*g.c + n
	rows, columns := min(k.s.m, k.c.tiling.rows-u), min(k.s.m, k.c.tiling.cols-v)
	if rows == k.s.m && columns == k.s.m {
		_ = k.dst[first+(k.s.m-1)*(ds.down+ds.across)+cols-1]
		l.square(&ws.pass, &ws.rows, 0, k.s.n, ss, unsafe.Pointer(&k.dst[first]), ds, cols/lanes, ws.tmp)
		return
	}
	whole := strides{down: k.s.m * k.width, across: k.width, block: lanes}
	l.square(&ws.pass, &ws.rows, 0, k.s.n, ss, unsafe.Pointer(&ws.edge[0]), whole, cols/lanes, ws.tmp)
	for i := range rows {
		for j := range columns {
			copy(k.dst[first+i*ds.down+j*ds.across:][:cols], ws.edge[i*whole.down+j*whole.across:])
		}
	}
}
