package winograd

import "unsafe"

// filter is a weight as the product's B: k = group·channels + c is its row, n
// its column, and tap t of it lies at
//
//	taps[group][t] + n·nStep + c·kStep
type filter struct {
	k, n         int
	channels     int
	nStep, kStep int
	taps         [][]int
}

func (f *filter) panels() int { return (f.n + width - 1) / width }

// floats is the size of one transformed panel: (points, k, width).
func (f *filter) floats(s *scheme) int { return s.points() * f.k * width }

// pack transforms rows [k0,k1) of panel j of w.
func (f *filter) pack(ws *workspace, s *scheme, panel, w []float32, j, k0, k1 int) {
	point := f.k * width
	ds := strides{down: s.n * point, across: point, block: width}
	ss := strides{across: lanes, block: s.r * s.r * lanes}
	for half := 0; half < width; half += lanes {
		n := j*width + half
		for k := k0; k < k1; k += maxBlocks {
			blocks := min(maxBlocks, k1-k)
			if n >= f.n {
				f.blank(panel[k*width+half:], s.points(), point, blocks)
				continue
			}
			for b := range blocks {
				f.collect(ws.taps[b*ss.block:][:ss.block], w, k+b, n)
			}
			for i := range s.r {
				ws.rows[i] = unsafe.Pointer(&ws.taps[i*s.r*lanes])
			}
			s.filter.square(&ws.pass, &ws.rows, 0, s.r, ss, unsafe.Pointer(&panel[k*width+half]), ds, blocks, &ws.tmp)
		}
	}
}

// blank writes zeros in place of 16 columns that do not exist.
func (f *filter) blank(dst []float32, points, step, blocks int) {
	for p := range points {
		for b := range blocks {
			clear(dst[p*step+b*width:][:lanes])
		}
	}
}

// collect brings the taps of row k, columns n … n+15, into vectors.
func (f *filter) collect(dst, w []float32, k, n int) {
	taps := f.taps[k/f.channels]
	at := n*f.nStep + k%f.channels*f.kStep
	for l := range lanes {
		for t, o := range taps {
			dst[t*lanes+l] = w[at+o]
		}
		at += f.nStep
	}
}

// unpack transforms rows [k0,k1) of a panel of gradients back, and writes them to
// dw. du is (points, rows, width), and begins at row k0.
func (f *filter) unpack(ws *workspace, s *scheme, dw, du []float32, rows, j, k0, k1 int) {
	point := rows * width
	ss := strides{across: point, block: width}
	ds := strides{down: s.r * lanes, across: lanes, block: s.r * s.r * lanes}
	for n := j * width; n < min(f.n, (j+1)*width); n += lanes {
		for k := k0; k < k1; k += maxBlocks {
			blocks := min(maxBlocks, k1-k)
			first := (k-k0)*width + n%width
			for i := range s.n {
				ws.rows[i] = unsafe.Pointer(&du[i*s.n*point+first])
			}
			s.gather.square(&ws.pass, &ws.rows, 0, s.n, ss, unsafe.Pointer(&ws.taps[0]), ds, blocks, &ws.tmp)
			for b := range blocks {
				f.distribute(dw, ws.taps[b*ds.block:][:ds.block], k+b, n)
			}
		}
	}
}

// distribute is the opposite of collect.
func (f *filter) distribute(dw, src []float32, k, n int) {
	taps := f.taps[k/f.channels]
	at := n*f.nStep + k%f.channels*f.kStep
	for l := range lanes {
		for t, o := range taps {
			dw[at+o] = src[t*lanes+l]
		}
		at += f.nStep
	}
}
