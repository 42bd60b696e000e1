package winograd

import "unsafe"

// The gradient of a filter by 16-bit integers (scale.go). Its sums are over tiles,
// so it is columns of V and Z that are scaled, each over a block of tiles: that
// many tiles of 32 columns, a slab, are transformed in the thread's second
// cache, and leave it as integers.
const (
	// slabTiles is the tiles of a slab, an even number.
	slabTiles = 128
	// slabWidth is the columns of a slab, those of scaleColumns.
	slabWidth = 32
)

// slabs is the slabs of all columns of V. Where the last is cut, integers without a
// meaning are written into the gap between rows.
func (k *gradient) slabs() int { return (k.filter.k + slabWidth - 1) / slabWidth }

// depthBlocks is the blocks of tiles that have scales of their own.
func (k *gradient) depthBlocks() int { return (k.size() + slabTiles - 1) / slabTiles }

// scales is the most that depthBlocks can be; none without integers.
func (k *gradient) scales() int {
	if k.integers == nil {
		return 0
	}
	return (k.block + slabTiles - 1) / slabTiles
}

// staged is the floats of a slab: (points, slabTiles, slabWidth), with gaps.
func (k *gradient) staged() int {
	if k.integers == nil {
		return 0
	}
	return k.s.points() * (slabTiles*slabWidth + gap)
}

// doPackIntegers makes one slab of V or Z.
func (k *gradient) doPackIntegers(chunk int, ws *workspace) {
	per := k.slabs() + k.filter.panels()
	b, slab := chunk/per, chunk%per
	t0 := b * slabTiles
	n := min(slabTiles, k.size()-t0)
	stage := k.scratch[k.seen()+k.changes()+k.sums()+ws.thread*k.staged():][:k.staged()]
	for t := range n {
		k.stage(ws, stage[t*slabWidth:], t0+t, slab)
	}
	if n%2 != 0 {
		for p := range k.s.points() {
			clear(stage[p*(slabTiles*slabWidth+gap)+n*slabWidth:][:slabWidth])
		}
		n++
	}
	for p := range k.s.points() {
		dst, scales, step := k.seenIntegers(p, b, slab*slabWidth)
		if slab >= k.slabs() {
			dst, scales = k.changedIntegers(p, b, slab-k.slabs())
			step = k.width
		}
		k.integers.scaleColumns(&dst[0], 4*step, &stage[p*(slabTiles*slabWidth+gap)], 4*slabWidth, &scales[0], n)
	}
}

// stage transforms the slab's columns of one tile.
func (k *gradient) stage(ws *workspace, dst []float32, tile, slab int) {
	const step = slabTiles*slabWidth + gap
	image, r, c := k.tiling.at(k.first + tile)
	if slab >= k.slabs() {
		n := (slab - k.slabs()) * k.width
		k.dy.transform(ws, &k.s.spread, unsafe.Pointer(unsafe.SliceData(k.b)), image, r, c, n, min(k.p.O, n+k.width), dst, step, lanes)
		return
	}
	x := unsafe.Pointer(unsafe.SliceData(k.a))
	next, nr, nc := k.tiling.at(k.first + tile + 1)
	for i := 0; i < min(slabWidth, k.filter.k-slab*slabWidth)/lanes; {
		g, c0, c1 := k.channels(slab, i)
		g.prefetch(k.s, x, next, nr, nc, c0, c1)
		g.transform(ws, &k.s.input, x, image, r, c, c0, c1, dst[i*lanes:], step, lanes)
		i += (c1 - c0) / lanes
	}
}

// channels is what image columns from vector i of a slab on are of: at stride 1
// the rest of the slab, at stride 2 one vector of one group.
func (k *gradient) channels(slab, i int) (g *lattice, c0, c1 int) {
	v := slab*slabWidth/lanes + i
	if len(k.x) == 1 {
		return &k.x[0], v * lanes, min(k.p.C, (slab+1)*slabWidth)
	}
	c0 = v / len(k.x) * lanes
	return &k.x[v%len(k.x)], c0, c0 + lanes
}

// seenIntegers is V of point p and block b of tiles, from column r on: its words
// and scales, and the words of its rows.
func (k *gradient) seenIntegers(p, b, r int) (v []uint32, scales []float32, row int) {
	row = k.row()
	v = words(k.scratch[(p*k.depth()+b*slabTiles/2)*row+r:])
	return v, k.scratch[(k.s.points()*k.depth()+p*k.scales()+b)*row+r:], row
}

// changedIntegers is panel j of Z of point p and block b of tiles.
func (k *gradient) changedIntegers(p, b, j int) (z []uint32, scales []float32) {
	all := k.scratch[k.seen():]
	first := k.filter.panels() * k.s.points() * k.depth() * k.width
	point := j*k.s.points() + p
	return words(all[(point*k.depth()+b*slabTiles/2)*k.width:]), all[first+(point*k.scales()+b)*k.width:]
}

// pointIntegers is rows [k0,k1) of panel j of dU (+)= Vᵀ · Z of point p.
func (k *gradient) pointIntegers(ws *workspace, du []float32, p, j, k0, k1, cols int) {
	mr := k.integers.tile.MR
	for b := range k.depthBlocks() {
		z, sb := k.changedIntegers(p, b, j)
		v, sa, row := k.seenIntegers(p, b, k0)
		d := (min(slabTiles, k.size()-b*slabTiles) + 1) / 2
		for r := 0; r < k1-k0; r += mr {
			k.integers.tile.Run(d, v[r:], 1, row, z, du[r*k.width:], &ws.off, sa[r:], sb, min(mr, k1-k0-r), cols, k.first > 0 || b > 0)
		}
	}
}
