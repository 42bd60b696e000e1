package quality

import (
	"math"
	"slices"
	"testing"
)

// plane is picture i.
func (p Pictures) plane(i int) plane {
	out := newPlane(p.C, p.H, p.W)
	for k := range out.x {
		out.x[k] = float64(p.X[i*len(out.x)+k])
	}
	return out
}

// slowLaplacian is the pyramid of a picture, which it uses up, as it is defined.
func slowLaplacian(p plane) []plane {
	var levels []plane
	for min(p.h, p.w) >= pyramidLeap*pyramidLast && p.h%2 == 0 && p.w%2 == 0 {
		small := p.down()
		big := small.up()
		for i, v := range big.x {
			p.x[i] -= v
		}
		levels = append(levels, p)
		p = small
	}
	return append(levels, p)
}

// down smooths by (1,4,6,4,1)/16 in both directions, edges mirrored, and keeps
// every second row and column.
func (p plane) down() plane {
	s := p.smooth(1)
	out := plane{p.c, p.h / 2, p.w / 2, make([]float64, p.c*(p.h/2)*(p.w/2))}
	for c := range out.c {
		for y := range out.h {
			for x := range out.w {
				out.x[(c*out.h+y)*out.w+x] = s.x[(c*p.h+2*y)*p.w+2*x]
			}
		}
	}
	return out
}

// up puts zeros between rows and columns, and smooths by four times that kernel.
func (p plane) up() plane {
	out := plane{p.c, 2 * p.h, 2 * p.w, make([]float64, 4*len(p.x))}
	for c := range p.c {
		for y := range p.h {
			for x := range p.w {
				out.x[(c*out.h+2*y)*out.w+2*x] = p.x[(c*p.h+y)*p.w+x]
			}
		}
	}
	return out.smooth(2)
}

// smooth convolves rows and columns with gain·(1,4,6,4,1)/16.
func (p plane) smooth(gain float64) plane {
	kernel := [5]float64{1, 4, 6, 4, 1}
	rows := plane{p.c, p.h, p.w, make([]float64, len(p.x))}
	out := plane{p.c, p.h, p.w, make([]float64, len(p.x))}
	for c := range p.c {
		for y := range p.h {
			line := p.x[(c*p.h+y)*p.w:][:p.w]
			for x := range p.w {
				sum := 0.0
				for k, f := range kernel {
					sum += f * line[mirror(x+k-2, p.w)]
				}
				rows.x[(c*p.h+y)*p.w+x] = gain * sum / 16
			}
		}
		for y := range p.h {
			for k, f := range kernel {
				from := rows.x[(c*p.h+mirror(y+k-2, p.h))*p.w:][:p.w]
				to := out.x[(c*p.h+y)*p.w:][:p.w]
				for x, v := range from {
					to[x] += gain * f * v / 16
				}
			}
		}
	}
	return out
}

// The levels are those of the definition, to the bit; they do not depend on what was in
// their room, and give the picture back.
func TestLaplacian(t *testing.T) {
	rng := seeded(7)
	for _, p := range []Pictures{drawn(rng, 2, 2, 64, 32), drawn(rng, 2, 1, 34, 70), drawn(rng, 2, 3, 128, 192), drawn(rng, 2, 1, 33, 64), drawn(rng, 2, 1, 5, 9)} {
		l := newLaplacian(p.C, p.H, p.W)
		for i := range p.N {
			size := p.C * p.H * p.W
			l.of(p.X[i*size : (i+1)*size])
			want := slowLaplacian(p.plane(i))
			if len(l.levels) != len(want) {
				t.Fatalf("%d×%d: %d levels, want %d", p.H, p.W, len(l.levels), len(want))
			}
			for k, level := range l.levels {
				if level.h != want[k].h || level.w != want[k].w || !slices.Equal(level.x, want[k].x) {
					t.Errorf("%d×%d: level %d differs", p.H, p.W, k)
				}
			}
			if len(want) != 2 {
				continue
			}
			up := want[1].up()
			for k, v := range p.plane(i).x {
				if !(math.Abs(up.x[k]+l.levels[0].x[k]-v) <= 1e-6) {
					t.Fatal("the levels do not give the picture back")
				}
			}
		}
	}
}

// A flat picture has no details.
func TestLaplacianOfFlat(t *testing.T) {
	l := newLaplacian(1, 32, 32)
	l.of(slices.Repeat([]float32{0.75}, 1024))
	if len(l.levels) != 2 {
		t.Fatalf("%d levels", len(l.levels))
	}
	for k, want := range []float64{0, 0.75} {
		for _, v := range l.levels[k].x {
			if !(math.Abs(v-want) <= 1e-12) {
				t.Fatalf("level %d has %v, want %v", k, v, want)
			}
		}
	}
}
