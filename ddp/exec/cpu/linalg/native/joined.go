package native

import "ebtrain/ddp/exec/cpu/linalg/micro"

// Results of few channels leave most of a vector empty, so a row of a micro-tile may be
// those of a few neighbouring pixels. Its window is as much wider, and B has the weight
// once for each pixel, in columns of its own and as many taps further, between zeros. For
// two pixels of three taps:
//
//	taps   pixel 0   pixel 1
//	0      ███████
//	1      ███████   ███████
//	2      ███████   ███████
//	3                ███████

// joins is how many pixels are best taken as one: those that fill most of a vector with
// what is not multiplied by zeros.
func joins(mk *micro.Kernel, b *band, p *product) int {
	best, most := 1, 0.0
	for n := 1; n*p.n <= mk.Narrow && b.GridW/n >= narrowGrid; n++ {
		wide := b.wide(n)
		gain := float64(n) * float64(b.wide(1)) / float64(wide)
		if b.GridW%n == 0 && p.c.col == p.n && gain > most {
			best, most = n, gain
		}
	}
	return best
}

// wide is the pixels of a row of taps of so many neighbouring windows.
func (b *band) wide(n int) int { return b.strips[0].count + (n-1)*b.StepW }

// join takes n pixels as one.
func (b *band) join(n int, p *product) {
	v, wide := *b.windows, b.wide(n)
	v.strips = append([]strip(nil), v.strips...)
	for i := range v.strips {
		v.strips[i].count, v.strips[i].k = wide, i*wide*v.c
	}
	v.maxW, v.k = v.minW+wide-1, len(v.strips)*wide*v.c
	v.GridW, v.StepW = v.GridW/n, v.StepW*n
	b.windows, b.pixels = &v, n
	p.m, p.n, p.k = p.m/n, p.n*n, v.k
	p.c.w, p.c.col = p.c.w/n, p.c.col*n
}

// spread writes B of joined pixels to dst, from B of one, of k rows and n columns, in a panel.
func (b *band) spread(dst, one []float32, k, n, nr int) {
	clear(dst)
	step, row := b.StepW/b.pixels*b.c, k/len(b.strips)
	for i := range b.strips {
		for q := range b.pixels {
			for l := range row {
				copy(dst[(b.strips[i].k+q*step+l)*nr+q*n:][:n], one[(i*row+l)*nr:])
			}
		}
	}
}
