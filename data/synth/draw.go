package synth

// sub is the number of sample points along a pixel's side, whose mean
// smooths the figure's edge.
const sub = 4

// unit is the picture's shorter side in the coordinates of figures.
const unit = 4096

// figure is a shape with its place: centre and radius in units.
type figure struct {
	class     int64
	x, y, r   int
	period    int  // of stripes, in units
	diagonal  bool // stripes run at 45°
	downwards bool // the triangle stands on its tip
}

// scene is what a picture shows.
type scene struct {
	colours [3][3]int // background's two ends, figure
	dx, dy  int       // direction of the fade
	figure  figure
}

// scene makes up picture i.
func (s *Set) scene(i int64) scene {
	var v scene
	w := s.words(i)
	for c := range 2 {
		for ch := range 3 {
			v.colours[c][ch] = 32 + w.below(128)
		}
	}
	for ch := range 3 { // far from the background's mean in each channel
		mean := (v.colours[0][ch] + v.colours[1][ch]) / 2
		v.colours[2][ch] = (mean + 96 + w.below(64)) % 256
	}
	v.dx, v.dy = w.below(201)-100, w.below(201)-100
	f := figure{
		class: int64(w.below(len(Classes()))),
		r:     unit/6 + w.below(unit/6),
	}
	side := min(s.size.H, s.size.W)
	f.x, f.y = f.r+w.below(unit*s.size.W/side-2*f.r), f.r+w.below(unit*s.size.H/side-2*f.r)
	f.period = f.r/2 + w.below(f.r/2)
	f.diagonal, f.downwards = w.below(2) == 1, w.below(2) == 1
	v.figure = f
	return v
}

// draw writes picture i, (3, rows, columns), and returns its label.
func (s *Set) draw(i int64, dst []byte) int64 {
	v := s.scene(i)
	rows, cols := s.size.H, s.size.W
	span := abs(v.dx) + abs(v.dy) + 1
	for py := range rows {
		for px := range cols {
			// fade runs over 0 … 256 across the picture.
			cx, cy := (2*px+1-cols)*256/(2*cols), (2*py+1-rows)*256/(2*rows)
			fade := 128 + (cx*v.dx+cy*v.dy)/span
			cover := v.figure.cover(px, py, min(rows, cols))
			for ch := range 3 {
				back := v.colours[0][ch]*(256-fade) + v.colours[1][ch]*fade // ·256
				c := (back*(sub*sub-cover)/256 + v.colours[2][ch]*cover) / (sub * sub)
				dst[(ch*rows+py)*cols+px] = byte(min(max(c, 0), 255))
			}
		}
	}
	return v.figure.class
}

// cover is how many of the sub² points of a pixel lie in the figure, where side
// pixels are a unit.
func (f *figure) cover(px, py, side int) int {
	pixel := unit/side + 1
	x0, y0 := px*unit/side, py*unit/side
	if x0+pixel < f.x-f.r || x0 > f.x+f.r || y0+pixel < f.y-f.r || y0 > f.y+f.r {
		return 0
	}
	n := 0
	for j := range sub {
		y := (2*(py*sub+j)+1)*unit/(2*sub*side) - f.y
		for i := range sub {
			x := (2*(px*sub+i)+1)*unit/(2*sub*side) - f.x
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
