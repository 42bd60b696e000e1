package winograd

import "unsafe"

// The gradient of a filter by 16-bit integers. Its sums are over tiles, so it is
// columns of V and Z that are scaled, each over slabTiles tiles: that many tiles of
// slabWidth columns, a slab, are transformed in the thread's stage, and leave it as
// integers.
//
//	V:  columns (channels of x) →        a slab of each point
//	    ┌────┬────┬────┐ tiles           slabTiles × slabWidth
//	    │slab│    │    │   ↓             float32 in the stage,
//	    ├────┼────┼────┤                 slabTiles/2 × slabWidth
//	    │    │    │    │                 words in V, and slabWidth
//	    └────┴────┴────┘                 scales behind V
const (
	// slabTiles is an even number.
	slabTiles = 128
	// slabWidth is the columns of scaleColumns, and of a panel of Z.
	slabWidth = 32
	// slabStep is the floats from one point of a slab to the next.
	slabStep = slabTiles*slabWidth + gap
)

func (*int16s) sumTiles() int { return slabTiles }

// gradientBlock is whole slabs, or all tiles in pairs.
func (*int16s) gradientBlock(block, tiles int) int {
	return min((block+slabTiles-1)/slabTiles*slabTiles, tiles+tiles%2)
}

func (*int16s) stagedSlab(k *gradient) int { return k.s.points() * slabStep }

// slabsOfV is the slabs of all columns of V. Where the last is cut, integers without
// a meaning are written into the gap between rows.
func slabsOfV(k *gradient) int { return (k.filter.k + slabWidth - 1) / slabWidth }

func (*int16s) gradientChunks(k *gradient) int {
	return k.sumBlocks() * (slabsOfV(k) + k.filter.panels())
}

// packGradient makes one slab of V, or of Z, where it is as wide as a panel.
func (n *int16s) packGradient(k *gradient, ws *workspace, chunk int) {
	slabs := slabsOfV(k)
	b, slab := chunk/(slabs+k.filter.panels()), chunk%(slabs+k.filter.panels())
	tiles := min(slabTiles, k.size()-b*slabTiles)
	stage := k.stage(ws)
	for t := range tiles {
		if slab < slabs {
			n.stageX(k, ws, stage[t*slabWidth:], b*slabTiles+t, slab)
		} else {
			stageDY(k, ws, stage[t*slabWidth:], b*slabTiles+t, slab-slabs)
		}
	}
	if tiles%2 != 0 { // half of a pair
		for p := range k.s.points() {
			clear(stage[p*slabStep+tiles*slabWidth:][:slabWidth])
		}
		tiles++
	}
	for p := range k.s.points() {
		dst, scales, step := k.slabOf(p, b, slab, slabs)
		n.scaleColumns(&words(dst)[0], 4*step, &stage[p*slabStep], 4*slabWidth, &scales[0], tiles)
	}
}

// slabOf is where a slab of point p and block b of tiles belongs: its words, scales,
// and the words of a row.
func (k *gradient) slabOf(p, b, slab, slabs int) (dst, scales []float32, row int) {
	if slab < slabs {
		dst, scales = k.vAt(p, b, slab*slabWidth)
		return dst, scales, k.row()
	}
	dst, scales = k.zAt(p, b, slab-slabs)
	return dst, scales, k.width
}

// stageDY transforms a panel's columns of one tile of dy.
func stageDY(k *gradient, ws *workspace, dst []float32, tile, panel int) {
	image, r, c := k.tiles.at(k.first + tile)
	k.out.transform(ws, &k.s.spread, unsafe.Pointer(unsafe.SliceData(k.dy)), image, r, c, panel*k.width, min(k.p.O, (panel+1)*k.width), dst, slabStep, lanes)
}

// stageX transforms a slab's columns of one tile of x.
func (n *int16s) stageX(k *gradient, ws *workspace, dst []float32, tile, slab int) {
	x := unsafe.Pointer(unsafe.SliceData(k.x))
	image, r, c := k.tiles.at(k.first + tile)
	next, nr, nc := k.tiles.at(k.first + tile + 1)
	for i := 0; i < min(slabWidth, k.filter.k-slab*slabWidth)/lanes; {
		g, c0, c1 := slabChannels(k, slab, i)
		g.prefetch(k.s, n.prefetch, x, next, nr, nc, c0, c1)
		g.transform(ws, &k.s.input, x, image, r, c, c0, c1, dst[i*lanes:], slabStep, lanes)
		i += (c1 - c0) / lanes
	}
}

// slabChannels is what columns of V from vector i of a slab on are of: at stride 1
// the rest of the slab, at stride 2 one vector of one lattice.
func slabChannels(k *gradient, slab, i int) (g *lattice, c0, c1 int) {
	v := slab*slabWidth/lanes + i
	if len(k.in) == 1 {
		return &k.in[0], v * lanes, min(k.p.C, (slab+1)*slabWidth)
	}
	c0 = v / len(k.in) * lanes
	return &k.in[v%len(k.in)], c0, c0 + lanes
}
