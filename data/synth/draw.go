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
	f := &v.figure
	xs, ys := s.along(cols, f.x, f.r), s.along(rows, f.y, f.r)
	for py := range ys {
		for px := range xs {
			fade := 128 + (xs[px].fade*v.dx+ys[py].fade*v.dy)/span // over 0 … 256 across the picture
			cover := f.cover(&xs[px], &ys[py])
			for ch := range 3 {
				back := v.colours[0][ch]*(256-fade) + v.colours[1][ch]*fade // ·256
				c := (back*(sub*sub-cover)/256 + v.colours[2][ch]*cover) / (sub * sub)
				dst[(ch*rows+py)*cols+px] = byte(min(max(c, 0), 255))
			}
		}
	}
	return f.class
}

// stretch is what a pixel covers of an axis: where it is, from -128 to 128, its points,
// relative to the figure's centre, and whether the figure comes near them.
type stretch struct {
	fade   int
	points [sub]int
	near   bool
}

// along are the stretches of an axis of n pixels, for a figure of radius r at centre.
func (s *Set) along(n, centre, r int) []stretch {
	all := make([]stretch, n)
	side := min(s.size.H, s.size.W)
	pixel := unit/side + 1
	for p := range all {
		all[p].fade = (2*p + 1 - n) * 256 / (2 * n)
		first := p*unit/side - centre
		all[p].near = first+pixel >= -r && first <= r
		for i := range sub {
			all[p].points[i] = (2*(p*sub+i)+1)*unit/(2*sub*side) - centre
		}
	}
	return all
}

// cover is how many of a pixel's sub² points lie in the figure.
func (f *figure) cover(xs, ys *stretch) int {
	n := 0
	if !xs.near || !ys.near {
		return n
	}
	for _, y := range ys.points {
		for _, x := range xs.points {
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
