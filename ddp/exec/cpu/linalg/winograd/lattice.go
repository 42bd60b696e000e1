package winograd

import "unsafe"

// lattice is some of the pixels of dense images (N,h,w,c): point (u,v) is pixel
// (row + step·u, col + step·v). Points outside the image are zeros.
type lattice struct{ h, w, c, step, row, col int }

// tileGrid cuts rows × cols points of each of so many images into tiles of m × m.
type tileGrid struct{ images, rows, cols, m int }

func (t tileGrid) down() int   { return (t.rows + t.m - 1) / t.m }
func (t tileGrid) across() int { return (t.cols + t.m - 1) / t.m }
func (t tileGrid) count() int  { return t.images * t.down() * t.across() }

// at is the image of a tile, and its first point.
func (t tileGrid) at(tile int) (image, u, v int) {
	per := t.down() * t.across()
	return tile / per, tile % per / t.across() * t.m, tile % t.across() * t.m
}

// inside is the range of 0 … n whose points first+i lie in 0 … size, on an axis
// that begins at origin and goes on in steps.
func inside(origin, step, first, n, size int) (from, to int) {
	for to = n; to > 0 && origin+step*(first+to-1) >= size; to-- {
	}
	for from < to && origin+step*(first+from) < 0 {
		from++
	}
	return from, to
}

// transform writes L · X · Lᵀ for channels [c0,c1) of one tile X, whose first
// point is (u,v): point p of the result, of 16 channels each, to dst[p·step +
// i·vector], i the vector of channels. The rows and columns of X that are outside the image count as
// zeros.
func (g lattice) transform(ws *workspace, l *linear, x unsafe.Pointer, image, u, v, c0, c1 int, dst []float32, step, vector int) {
	from, to := inside(g.col, g.step, v, l.cols, g.w)
	top, bottom := inside(g.row, g.step, u, l.cols, g.h)
	ss := strides{across: g.step * g.c, vector: lanes}
	ds := strides{down: l.rows * step, across: step, vector: vector}
	first := ((image*g.h+g.row+g.step*u)*g.w+g.col+g.step*(v+from))*g.c + c0
	_ = dst[(l.rows*l.rows-1)*step+((c1-c0)/lanes-1)*vector+lanes-1]
	for c := 0; c < c1-c0; c += maxVectors * lanes {
		for i := range l.cols {
			if i < top || i >= bottom || from == to {
				ws.rows[i] = unsafe.Pointer(unsafe.SliceData(ws.zeros))
				continue
			}
			ws.rows[i] = unsafe.Add(x, 4*(first+i*g.step*g.w*g.c+c))
		}
		vectors := min(maxVectors, (c1-c0-c)/lanes)
		l.square(&ws.pass, &ws.rows, from, to, ss, unsafe.Pointer(&dst[c/lanes*vector]), ds, vectors, ws.tmp)
	}
}

// prefetch brings what transform of the tile will read to the first cache, but
// for the columns that it shares with the tile before. The processor does not
// foresee addresses so far apart. Some are outside of the image.
func (g lattice) prefetch(s *scheme, lines func(p uintptr, rows, cols, down, across, bytes int), x unsafe.Pointer, image, u, v, c0, c1 int) {
	first := ((image*g.h+g.row+g.step*u)*g.w+g.col+g.step*(v+s.n-s.m))*g.c + c0
	lines(uintptr(x)+uintptr(4*first), s.n, s.m, 4*g.step*g.w*g.c, 4*g.step*g.c, 4*(c1-c0))
}

// zeros is how many zeros transform reads in place of a row.
func (g lattice) zeros(l *linear) int { return l.cols*g.step*g.c + maxVectors*lanes }
