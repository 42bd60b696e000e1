package synth

// sub is the number of sample points along a pixel's side, whose mean
// smooths the figure's edge.
const sub = 4

// unit is the picture's side in the coordinates of figures.
const unit = 4096

// figure is a shape with its place: centre and radius in units.
type figure struct {
	class     int64
	x, y, r   int
	period    int  // of stripes, in units
	diagonal  bool // stripes run at 45°
	downwards bool // the triangle stands on its tip
}

// draw writes picture i, (3, size, size), and returns its label.
func (s *Set) draw(i int64, dst []byte) int64 {
	w := s.words(i)
	var colours [3][3]int // background's two ends, figure
	for c := range 2 {
		for ch := range 3 {
			colours[c][ch] = 32 + w.below(128)
		}
	}
	for ch := range 3 { // far from the background's mean in each channel
		mean := (colours[0][ch] + colours[1][ch]) / 2
		colours[2][ch] = (mean + 96 + w.below(64)) % 256
	}
	dx, dy := w.below(201)-100, w.below(201)-100 // direction of the fade
	f := figure{
		class: int64(w.below(len(Classes()))),
		r:     unit/6 + w.below(unit/6),
	}
	f.x, f.y = f.r+w.below(unit-2*f.r), f.r+w.below(unit-2*f.r)
	f.period = f.r/2 + w.below(f.r/2)
	f.diagonal, f.downwards = w.below(2) == 1, w.below(2) == 1

	plane := s.size * s.size
	span := abs(dx) + abs(dy) + 1
	for py := range s.size {
		for px := range s.size {
			// fade runs over 0 … 256 across the picture.
			cx, cy := (2*px+1-s.size)*256/(2*s.size), (2*py+1-s.size)*256/(2*s.size)
			fade := 128 + (cx*dx+cy*dy)/span
			cover := f.cover(px, py, s.size)
			for ch := range 3 {
				back := colours[0][ch]*(256-fade) + colours[1][ch]*fade // ·256
				v := (back*(sub*sub-cover)/256 + colours[2][ch]*cover) / (sub * sub)
				dst[ch*plane+py*s.size+px] = byte(min(max(v, 0), 255))
			}
		}
	}
	return f.class
}

// cover is how many of the sub² points of a pixel lie in the figure.
func (f *figure) cover(px, py, size int) int {
	side := unit/size + 1
	x0, y0 := px*unit/size, py*unit/size
	if x0+side < f.x-f.r || x0 > f.x+f.r || y0+side < f.y-f.r || y0 > f.y+f.r {
		return 0
	}
	n := 0
	for j := range sub {
		y := (2*(py*sub+j)+1)*unit/(2*sub*size) - f.y
		for i := range sub {
			x := (2*(px*sub+i)+1)*unit/(2*sub*size) - f.x
			if f.inside(x, y) {
				n++
			}
		}
	}
	return n
}

// inside says whether a point, relative to the centre, is in the figure.
func (f *figure) inside(x, y int) bool {
	r := f.r
	square := abs(x) <= r && abs(y) <= r
	switch f.class {
	case 0: // disc
		return x*x+y*y <= r*r
	case 1: // square
		return square
	case 2: // triangle
		if f.downwards {
			y = -y
		}
		return abs(y) <= r && 2*abs(x) <= y+r
	case 3: // ring
		d := x*x + y*y
		return d <= r*r && 4*d >= r*r
	case 4: // cross
		return square && (3*abs(x) <= r || 3*abs(y) <= r)
	default: // stripes
		if f.diagonal {
			x += y
		}
		return square && (x+4*r)/f.period%2 == 0
	}
}

func abs(x int) int { return max(x, -x) }
