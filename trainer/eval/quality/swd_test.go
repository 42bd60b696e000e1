package quality

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

func drawn(rng *rand.Rand, n, c, h, w int) Pictures {
	p := Pictures{n, c, h, w, make([]float32, n*c*h*w)}
	for i := range p.X {
		p.X[i] = float32(rng.Float64()*2 - 1)
	}
	return p
}

// A pyramid of a smooth picture has no details, and details and what is left give
// the picture back.
func TestLaplacian(t *testing.T) {
	p := drawn(seeded(7), 1, 2, 64, 32)
	levels := laplacian(p.planes(0))
	if len(levels) != 2 || levels[0].h != 64 || levels[1].h != 32 || levels[1].w != 16 {
		t.Fatalf("%d levels", len(levels))
	}
	up := levels[1].up()
	for i, v := range p.X {
		if math.Abs(up.x[i]+levels[0].x[i]-float64(v)) > 1e-6 {
			t.Fatal("the levels do not give the picture back")
		}
	}
	flat := plane{1, 32, 32, slices.Repeat([]float64{0.7}, 1024)}
	levels = laplacian(flat)
	for _, v := range levels[0].x {
		if math.Abs(v) > 1e-12 {
			t.Fatalf("a flat picture has a detail of %v", v)
		}
	}
	if math.Abs(levels[1].x[5]-0.7) > 1e-12 {
		t.Errorf("a flat picture becomes %v", levels[1].x[5])
	}
}

func TestSWD(t *testing.T) {
	rng := seeded(8)
	s := SWD{Patches: 20, Directions: 30, Seed: 3, Mul: Plain}
	a, b, c := drawn(rng, 100, 3, 32, 32), drawn(rng, 100, 3, 32, 32), drawn(rng, 100, 3, 32, 32)
	for i := range c.X { // runs of equal pixels
		c.X[i] = c.X[i-i%8]
	}
	distance := func(x, y Pictures) []float64 {
		t.Helper()
		px, errX := s.Project(x)
		py, errY := s.Project(y)
		d, err := px.Distance(py)
		if errX != nil || errY != nil || err != nil || len(d) != 2 || px.Sides[0] != 32 || px.Sides[1] != 16 {
			t.Fatal(d, errX, errY, err)
		}
		return d
	}
	if d := distance(a, a); d[0] != 0 || d[1] != 0 {
		t.Errorf("of equal pictures: %v", d)
	}
	if near, far := distance(a, b), distance(a, c); far[0] < 2*near[0] {
		t.Errorf("alike %v, not alike %v", near, far)
	}
	// One level of one direction, by hand.
	m := NewMatrix(s.Patches*4, 3*49)
	small := drawn(rng, 4, 3, 16, 16)
	p, err := s.Project(small)
	if err != nil {
		t.Fatal(err)
	}
	pyramids := make([][]plane, 4)
	for i := range pyramids {
		pyramids[i] = laplacian(small.planes(i))
	}
	copy(m.X, s.patches(pyramids, 0).X)
	for c := range 3 {
		var all []float64
		for i := range m.N {
			all = append(all, m.Row(i)[c*49:(c+1)*49]...)
		}
		mean, sd := 0.0, 0.0
		for _, v := range all {
			mean += v / float64(len(all))
		}
		for _, v := range all {
			sd += (v - mean) * (v - mean) / float64(len(all))
		}
		for i := range m.N {
			for k := range 49 {
				m.Row(i)[c*49+k] = (m.Row(i)[c*49+k] - mean) / math.Sqrt(sd)
			}
		}
	}
	// Any direction has length 1, so projections of normalised patches have about
	// the variance of one value; the largest is at most the longest patch.
	longest := 0.0
	for _, v := range norms(m) {
		longest = max(longest, math.Sqrt(v))
	}
	for _, line := range p.sorted[0] {
		if !slices.IsSorted(line) || len(line) != m.N || math.Abs(line[0]) > longest || math.Abs(line[len(line)-1]) > longest {
			t.Errorf("projections %v of patches of length up to %v", line, longest)
		}
	}
	if _, err := s.Project(drawn(rng, 2, 1, 6, 6)); err == nil {
		t.Error("pictures smaller than a patch")
	}
}

// Of pictures of one patch and one value each, v, a direction sees v times the sum of its
// 49 values, which has about the variance 1 of any value of a unit vector times √49: the
// distance is that of the standardised values, times 1,000 and E|N(0, 1)|.
func TestSWDOfConstantPictures(t *testing.T) {
	constant := func(values ...float64) (Pictures, []float64) {
		p := Pictures{N: len(values), C: 1, H: patchSide, W: patchSide}
		for _, v := range values {
			for range patchSide * patchSide {
				p.X = append(p.X, float32(v))
			}
		}
		mean, sd := stat.PopMeanStdDev(values, nil)
		z := make([]float64, len(values))
		for i, v := range values {
			z[i] = (v - mean) / sd
		}
		slices.Sort(z)
		return p, z
	}
	x, zx := constant(-1, -0.5, 0, 0.75, 1)
	y, zy := constant(-0.25, 1, -0.25, -0.25, -0.25)
	want := 0.0
	for i, v := range zx {
		want += 1000 * math.Sqrt(2/math.Pi) * math.Abs(v-zy[i]) / float64(len(zx))
	}
	s := SWD{Patches: 2, Directions: 4096, Seed: 2, Mul: Plain}
	px, errX := s.Project(x)
	py, errY := s.Project(y)
	d, err := px.Distance(py)
	if err := errors.Join(errX, errY, err); err != nil || len(d) != 1 || math.Abs(d[0]/want-1) > 0.03 {
		t.Errorf("got %v, %v; want %v", d, err, want)
	}
}
