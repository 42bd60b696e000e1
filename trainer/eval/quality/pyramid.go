package quality

// plane is a picture of several channels, one after another.
type plane struct {
	c, h, w int
	x       []float64
}

func newPlane(c, h, w int) plane { return plane{c, h, w, make([]float64, c*h*w)} }

// line is a row of a channel, in place.
func (p plane) line(c, y int) []float64 { return p.x[(c*p.h+y)*p.w:][:p.w] }

// laplacian is room for the pyramid of a picture, finest level first: details of each,
// and the coarsest as it is.
type laplacian struct {
	levels []plane
	lines  []float64 // of a channel, smoothed along them
}

func newLaplacian(c, h, w int) *laplacian {
	l := &laplacian{levels: []plane{newPlane(c, h, w)}, lines: make([]float64, h*w/pyramidLeap)}
	for min(h, w) >= pyramidLeap*pyramidLast && h%2 == 0 && w%2 == 0 {
		h, w = h/pyramidLeap, w/pyramidLeap
		l.levels = append(l.levels, newPlane(c, h, w))
	}
	return l
}

// of makes it that of a picture.
func (l *laplacian) of(x []float32) {
	for i, v := range x {
		l.levels[0].x[i] = float64(v)
	}
	for i, small := range l.levels[1:] {
		down(small, l.levels[i], l.lines)
		lessUp(l.levels[i], small, l.lines)
	}
}

// down makes small big smoothed by (1,4,6,4,1)/16 in both directions, edges mirrored,
// of which every second row and column is kept. No others are computed.
func down(small, big plane, lines []float64) {
	for c := range big.c {
		for y := range big.h {
			narrow(lines[y*small.w:][:small.w], big.line(c, y))
		}
		line := func(y int) []float64 { return lines[mirror(y, big.h)*small.w:][:small.w] }
		for y := range small.h {
			to := small.line(c, y)
			a, b, m, d, e := line(2*y-2), line(2*y-1), line(2*y), line(2*y+1), line(2*y+2)
			for x := range to {
				to[x] = a[x]/16 + b[x]/4 + 6*m[x]/16 + d[x]/4 + e[x]/16
			}
		}
	}
}

// narrow is every second value of a line smoothed by (1,4,6,4,1)/16.
func narrow(to, line []float64) {
	at := func(x int) float64 { return line[mirror(x, len(line))] }
	for x := range to {
		to[x] = (at(2*x-2) + 4*at(2*x-1) + 6*at(2*x) + 4*at(2*x+1) + at(2*x+2)) / 16
	}
}

// lessUp takes off big what small becomes with zeros between rows and columns,
// smoothed by four times that kernel. A zero adds nothing, so every second row and
// column has the weights (1,6,1)/8, and the others (1,1)/2.
func lessUp(big, small plane, lines []float64) {
	for c := range small.c {
		for y := range small.h {
			widen(lines[y*big.w:][:big.w], small.line(c, y))
		}
		line := func(y int) []float64 { return lines[mirror(2*y, big.h)/2*big.w:][:big.w] }
		for y := range small.h {
			before, here, after := line(y-1), line(y), line(y+1)
			even, odd := big.line(c, 2*y), big.line(c, 2*y+1)
			for x, v := range here {
				even[x] -= before[x]/8 + 12*v/16 + after[x]/8
				odd[x] -= v/2 + after[x]/2
			}
		}
	}
}

// widen is a line with a zero after each value, smoothed by (1,4,6,4,1)/8.
func widen(to, line []float64) {
	at := func(x int) float64 { return line[mirror(2*x, len(to))/2] }
	for x, v := range line {
		after := at(x + 1)
		to[2*x] = (at(x-1) + 6*v + after) / 8
		to[2*x+1] = (4*v + 4*after) / 8
	}
}

// mirror is a place beyond an edge, reflected on the last pixel.
func mirror(i, n int) int {
	if i < 0 {
		return -i
	}
	if i >= n {
		return 2*n - 2 - i
	}
	return i
}
