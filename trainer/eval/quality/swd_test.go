package quality

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ebtrain/ddp/philox"
)

func drawn(rng *rand.Rand, n, c, h, w int) Pictures {
	p := Pictures{n, c, h, w, make([]float32, n*c*h*w)}
	for i := range p.X {
		p.X[i] = float32(rng.Float64()*2 - 1)
	}
	return p
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
	copy(m.X, s.patches(small)[0].X)
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
		if !slices.IsSorted(line) || len(line) != m.N || !(math.Abs(line[0]) <= longest) || !(math.Abs(line[len(line)-1]) <= longest) {
			t.Errorf("projections %v of patches of length up to %v", line, longest)
		}
	}
	cut := drawn(rng, 2, 1, 8, 8)
	cut.X = cut.X[1:]
	if _, err := s.Project(cut); err == nil {
		t.Error("pictures that lack a value")
	}
	if p, err := s.Project(drawn(rng, 2, 1, 64, 32)); err != nil || !slices.Equal(p.Sides, []int{32, 16}) {
		t.Errorf("the shorter sides are %v, %v", p.Sides, err)
	}
	fewer, err := s.Project(drawn(rng, 3, 3, 16, 16))
	if _, less := fewer.Distance(p); less == nil || err != nil {
		t.Errorf("the distance of few pictures from more: %v", err)
	}
	if _, more := p.Distance(fewer); more == nil {
		t.Error("the distance of pictures from fewer")
	}
}

// Directions have length 1, go any way, and are others for each number, level and seed.
func TestDirections(t *testing.T) {
	const n, d = 400, 6
	of := func(seed uint64, level int) Matrix { return SWD{Directions: n, Seed: seed}.directions(d, level) }
	m := of(3, 0)
	for i, square := range norms(m) {
		if !(math.Abs(square-1) <= 1e-12) {
			t.Errorf("direction %d has the length %v", i, math.Sqrt(square))
		}
	}
	for j, mean := range m.Mean() {
		if !(math.Abs(mean) <= 4/math.Sqrt(n*d)) { // of values of variance 1/d
			t.Errorf("along axis %d they go %v on average", j, mean)
		}
	}
	if slices.Equal(m.Row(0), m.Row(1)) || slices.Equal(m.X, of(3, 1).X) || slices.Equal(m.X, of(4, 0).X) {
		t.Error("directions of another number, level or seed are the same")
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
	if err := errors.Join(errX, errY, err); err != nil || len(d) != 1 || !(math.Abs(d[0]/want-1) <= 0.03) {
		t.Errorf("got %v, %v; want %v", d, err, want)
	}
}

// slowProject is SWD.Project as it is defined: everything by itself, one after another.
func (s SWD) slowProject(p Pictures) [][][]float64 {
	pyramids := make([][]plane, p.N)
	for i := range pyramids {
		pyramids[i] = slowLaplacian(p.plane(i))
	}
	var out [][][]float64
	for l, first := range pyramids[0] {
		m := NewMatrix(p.N*s.Patches, p.C*patchSide*patchSide)
		for i := range pyramids {
			place := philox.Name{Seed: s.Seed, Purpose: philox.Sampling, Sub: philox.SamplingPatches, Step: uint32(l), Sample: uint32(i)}
			for k := range s.Patches {
				y, x := place.Intn(2*k, first.h-patchSide+1), place.Intn(2*k+1, first.w-patchSide+1)
				for at := range m.D {
					c, dy, dx := at/(patchSide*patchSide), at/patchSide%patchSide, at%patchSide
					m.Row(i*s.Patches + k)[at] = pyramids[i][l].x[(c*first.h+y+dy)*first.w+x+dx]
				}
			}
		}
		slowNormalise(m, p.C)
		var sorted [][]float64
		directions := s.directions(m.D, l)
		for k := range s.Directions {
			line := make([]float64, m.N)
			if err := Plain(directions.Rows(k, k+1), m, line); err != nil {
				panic(err)
			}
			slices.Sort(line)
			sorted = append(sorted, line)
		}
		out = append(out, sorted)
	}
	return out
}

func slowNormalise(m Matrix, channels int) {
	per := m.D / channels
	for c := range channels {
		sum, squares, n := 0.0, 0.0, float64(m.N*per)
		for i := range m.N {
			for _, v := range m.Row(i)[c*per : (c+1)*per] {
				sum += v
				squares += v * v
			}
		}
		mean := sum / n
		sd := math.Sqrt(max(0, squares/n-mean*mean))
		if sd == 0 {
			sd = 1
		}
		for i := range m.N {
			for k := c * per; k < (c+1)*per; k++ {
				m.Row(i)[k] = (m.Row(i)[k] - mean) / sd
			}
		}
	}
}

// With any number of threads the projections are those of the definition, to the bit.
func TestSWDOfThreads(t *testing.T) {
	rng := seeded(9)
	for _, p := range []Pictures{
		drawn(rng, 1, 1, 7, 7), drawn(rng, 3, 2, 9, 31), drawn(rng, 5, 3, 34, 64), drawn(rng, 2, 4, 66, 33),
		drawn(rng, 7, 1, 64, 128), {N: 2, C: 2, H: 32, W: 32, X: make([]float32, 2*2*32*32)}, drawn(rng, 40, 1, 32, 32),
	} {
		for _, threads := range []int{0, 1, 2, 5} {
			s := SWD{Patches: 30, Directions: 11, Seed: 4, Threads: threads, Mul: Plain}
			got, err := s.Project(p)
			want := s.slowProject(p)
			if err != nil || len(got.sorted) != len(want) {
				t.Fatalf("%d levels, want %d; %v", len(got.sorted), len(want), err)
			}
			for l := range want {
				for k := range want[l] {
					if !slices.Equal(got.sorted[l][k], want[l][k]) {
						t.Errorf("%d pictures %d×%d×%d, %d threads: level %d, direction %d differs", p.N, p.C, p.H, p.W, threads, l, k)
					}
				}
			}
		}
	}
}

// Of rows the distance is that of the values themselves: of one column, the mean difference
// of the sorted ones.
func TestRowsSWD(t *testing.T) {
	s := SWD{Directions: 5, Seed: 1, Mul: Plain}
	a, err := s.ProjectRows(Matrix{N: 3, D: 1, X: []float64{5, 1, 3}})
	b, err2 := s.ProjectRows(Matrix{N: 3, D: 1, X: []float64{2, 7, 3}})
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if d, err := a.Distance(b); err != nil || len(d) != 1 || !(math.Abs(d[0]-1000) <= 1e-9) { // 1, 3, 5 and 2, 3, 7
		t.Errorf("%v, %v, want 1000", d, err)
	}
}

// Equal values have a spread that is their sums' rounding, and are not blown up by it.
func TestMomentsOfEqualValues(t *testing.T) {
	m := NewMatrix(1000, 3)
	for i := range m.X {
		m.X[i] = float64(float32(0.1))
	}
	if mean, sd := moments(m, 0, 3); sd != 1 || !(math.Abs(mean-0.1) <= 1e-6) {
		t.Errorf("mean %v, sd %v; want 0.1 and 1", mean, sd)
	}
}
