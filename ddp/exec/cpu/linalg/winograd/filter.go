package winograd

import "unsafe"

// filter is a weight as the product's B. Its element for column n, channel c and
// tap t is at n·nStep + c·kStep + t, taps being in row-major order.
//
// Rows of B are the channels that each group of images has, 16 channels of all
// groups after each other:
//
//	k = c/16·16·groups + group·16 + c mod 16
//
// Group g meets taps first[g] + i·down + j·across, 0 ≤ i,j < r.
type filter struct {
	k, n         int
	width        int // of a panel
	taps         int // at most 16
	nStep, kStep int
	first        []int
	down, across int
}

func (f *filter) panels() int { return (f.n + f.width - 1) / f.width }

// floats is the size of one transformed panel: (points, k, width).
func (f *filter) floats(s *scheme) int { return s.points() * f.k * f.width }

// groupRows is how many rows belong to 16 channels: ranges of rows begin and
// end at multiples of it.
func (f *filter) groupRows() int { return lanes * len(f.first) }

// channel is the channel of a row of group 0.
func (f *filter) channel(k int) int { return k/f.groupRows()*lanes + k%lanes }

// pack transforms rows [k0,k1) of panel j of w to dst: (points, rows, width), with
// points so many floats apart.
func (f *filter) pack(ws *workspace, s *scheme, dst []float32, point int, w []float32, j, k0, k1 int) {
	for n := j * f.width; n < (j+1)*f.width; n += lanes {
		for b := k0; b < k1; b += f.groupRows() {
			if n >= f.n {
				f.blank(dst[(b-k0)*f.width+n%f.width:], point, s.points())
				continue
			}
			for k := b; k < b+lanes; k += maxVectors {
				f.packRows(ws, s, dst[(k-k0)*f.width+n%f.width:], point, w, f.channel(k), n)
			}
		}
	}
}

// packRows transforms channels c … c+maxVectors-1 of all groups, columns n … n+15.
func (f *filter) packRows(ws *workspace, s *scheme, dst []float32, point int, w []float32, c, n int) {
	ss := strides{across: f.across * lanes, vector: lanes * lanes}
	ds := strides{down: s.n * point, across: point, vector: f.width}
	for b := range maxVectors {
		at := n*f.nStep + (c+b)*f.kStep
		_ = w[at+(lanes-1)*f.nStep+f.taps-1]
		s.transpose.Columns(&ws.taps[b*ss.vector], &w[at], f.nStep, f.taps)
	}
	for g, first := range f.first {
		for i := range s.r {
			ws.rows[i] = unsafe.Pointer(&ws.taps[(first+i*f.down)*lanes])
		}
		s.filter.square(&ws.pass, &ws.rows, 0, s.r, ss, unsafe.Pointer(&dst[g*lanes*f.width]), ds, maxVectors, ws.tmp)
	}
}

// blank writes zeros in place of 16 columns that do not exist.
func (f *filter) blank(dst []float32, point, points int) {
	for p := range points {
		for b := range f.groupRows() {
			clear(dst[p*point+b*f.width:][:lanes])
		}
	}
}

// unpack transforms rows [k0,k1) of panel j of gradients back, and writes them to
// dw. du is (points, rows, width), and begins at row k0.
func (f *filter) unpack(ws *workspace, s *scheme, dw, du []float32, rows, j, k0, k1 int) {
	for n := j * f.width; n < min(f.n, (j+1)*f.width); n += lanes {
		for b := k0; b < k1; b += f.groupRows() {
			for k := b; k < b+lanes; k += maxVectors {
				f.unpackRows(ws, s, dw, du[(k-k0)*f.width+n%f.width:], rows*f.width, f.channel(k), n)
			}
		}
	}
}

// unpackRows is the opposite of packRows, for points so many floats apart.
func (f *filter) unpackRows(ws *workspace, s *scheme, dw, du []float32, point, c, n int) {
	ss := strides{across: point, vector: f.width}
	ds := strides{down: f.down * lanes, across: f.across * lanes, vector: lanes * lanes}
	for g, first := range f.first {
		for i := range s.n {
			ws.rows[i] = unsafe.Pointer(&du[i*s.n*point+g*lanes*f.width])
		}
		s.gather.square(&ws.pass, &ws.rows, 0, s.n, ss, unsafe.Pointer(&ws.taps[first*lanes]), ds, maxVectors, ws.tmp)
	}
	for b := range maxVectors {
		at := n*f.nStep + (c+b)*f.kStep
		_ = dw[at+(lanes-1)*f.nStep+f.taps-1]
		s.transpose.Rows(&dw[at], f.nStep, &ws.taps[b*ds.vector], f.taps)
	}
}
