package native

// band reads the windows of a convolution where the image lies: rows of its grid are
// computed a few at a time, from those rows of the image that they see, with a border of
// zeros, in a thread's own memory, which the second cache holds. There a row of taps is
// contiguous, neighbouring windows are a fixed distance apart, and so are rows of taps:
//
//	pitch ┌ 0 0 0 0 0 0 0 0 ┐
//	      │ 0 ▒ ▒ ▒ █ █ █ 0 │   ▒  a row of taps of one window: down rows lower
//	      │ 0 ▒ ▒ ▒ █ █ █ 0 │      is the next
//	      └ 0 ▒ ▒ ▒ █ █ █ 0 ┘
type band struct {
	*windows
	down   int // rows of the image from a row of taps to the next
	parts  int // bands of an image
	pixels int // neighbours taken as one, see join
}

// bandBytes is the size that the image's rows of a band should have.
const bandBytes = 256 << 10

// newBand is the band of windows whose taps are a lattice, neighbours in a row.
func newBand(v *windows) (b band, ok bool) {
	if len(v.Taps) == 0 || v.group != v.c {
		return b, false
	}
	b = band{windows: v, down: 1, pixels: 1}
	across := v.strips[0].count
	if len(v.strips) > 1 {
		b.down = v.strips[1].dh - v.strips[0].dh
	}
	for i, s := range v.strips {
		if s.count != across || s.dw != v.minW || s.dh != v.minH+i*b.down {
			return b, false
		}
	}
	rows := max(1, (bandBytes/4/b.pitch()-(v.maxH-v.minH))/v.StepH)
	b.parts = (v.GridH + rows - 1) / rows
	return b, true
}

// whole says that no window hangs over the edge: bands may be read in the image itself.
func (b *band) whole() bool {
	return b.minW >= 0 && b.minH >= 0 && (b.GridW-1)*b.StepW+b.maxW < b.w && (b.GridH-1)*b.StepH+b.maxH < b.h
}

// left and width are the first and the number of pixels of a row of a band, and pitch its
// floats.
func (b *band) left() int {
	if b.whole() {
		return 0
	}
	return b.minW
}

func (b *band) width() int {
	if b.whole() {
		return b.w
	}
	return (b.GridW-1)*b.StepW + b.maxW - b.minW + 1
}

func (b *band) pitch() int { return b.width() * b.c }

// height is the rows of the image that so many rows of the grid see.
func (b *band) height(rows int) int { return (rows-1)*b.StepH + b.maxH - b.minH + 1 }

// floats is the size of the largest band, and what micro-tiles of whole steps of rows read
// beyond it.
func (b *band) floats(step int) int {
	rows := (b.GridH + b.parts - 1) / b.parts
	return (b.height(rows)*b.pitch() + (step*b.StepW+b.minW-b.left())*b.c + lanes - 1) / lanes * lanes
}

// place is where rows [i0,i1) of the grid over image n see their windows: in the image, or
// in own, with a border.
func (b *band) place(own, data []float32, n, i0, i1, step int) []float32 {
	if b.whole() {
		from := ((n*b.h+i0*b.StepH+b.minH)*b.w + b.minW) * b.c
		if from+b.height(i1-i0)*b.pitch()+step*b.StepW*b.c <= len(data) {
			return data[from:]
		}
	}
	b.fill(own, data, n, i0, i1)
	return own[(b.minW-b.left())*b.c:]
}

// fill writes what rows [i0,i1) of the grid over image n see to dst.
func (b *band) fill(dst, data []float32, n, i0, i1 int) {
	pitch, c, left := b.pitch(), b.c, b.left()
	lo, hi := max(0, left), min(b.w, left+b.width()) // pixels that there are
	for r := range b.height(i1 - i0) {
		row, ih := dst[r*pitch:(r+1)*pitch], i0*b.StepH+b.minH+r
		if ih < 0 || ih >= b.h || lo >= hi {
			clear(row)
			continue
		}
		from := (n*b.h + ih) * b.w * c
		clear(row[:(lo-left)*c])
		copy(row[(lo-left)*c:], data[from+lo*c:from+hi*c])
		clear(row[(hi-left)*c:])
	}
}
