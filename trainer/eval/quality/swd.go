package quality

import (
	"fmt"
	"iter"
	"math"

	"ebtrain/ddp/philox"
)

// Pictures are n pictures (n, C, H, W).
type Pictures struct {
	N, C, H, W int
	X          []float32
}

// SWD compares pictures by the sliced Wasserstein distance of small patches, at
// each level of a Laplacian pyramid [Karras et al. 2018]: patches of 7×7, each
// channel normalised over its set, projected on random directions, and the mean
// difference of the sorted projections, times 1,000.
type SWD struct {
	Patches    int // of each picture and level; 128 as published
	Directions int // 512 as published
	Seed       uint64
	Threads    int // that compute beside Mul, which is called by one; less than 1 is 1
	Mul        Products
}

const (
	patchSide   = 7
	pyramidLeap = 2  // a level has half the side of the one before
	pyramidLast = 16 // side of the coarsest level, if there is one so small
)

// Projected are pictures as the distance sees them: of each level, finest first,
// the sorted projections on each direction.
type Projected struct {
	Sides  []int // of the levels, the shorter
	sorted [][][]float64
}

// Project is what is to be compared of pictures. Directions, and which patches are
// taken of picture i, depend on the seed alone.
func (s SWD) Project(p Pictures) (Projected, error) {
	var out Projected
	if len(p.X) != p.N*p.C*p.H*p.W || p.N < 1 || min(p.H, p.W) < patchSide || s.Patches < 1 || s.Directions < 1 {
		return out, fmt.Errorf("quality: a sliced Wasserstein distance of %d pictures %d×%d×%d, want sides of at least %d", p.N, p.C, p.H, p.W, patchSide)
	}
	levels := s.patches(p)
	for l, patches := range levels {
		normalise(patches, p.C, s.Threads)
		sorted, err := s.project(patches, l)
		if err != nil {
			return out, err
		}
		levels[l] = Matrix{} // its memory may be the next one's
		out.sorted = append(out.sorted, sorted)
		out.Sides = append(out.Sides, min(p.H, p.W)>>l)
	}
	return out, nil
}

// ProjectRows is what is to be compared of rows of any values, as they are: the distance is
// that of the rows themselves, at one level. Patches means nothing to them.
func (s SWD) ProjectRows(m Matrix) (Projected, error) {
	if m.N < 1 || m.D < 1 || s.Directions < 1 {
		return Projected{}, fmt.Errorf("quality: a sliced Wasserstein distance of %d rows of %d values on %d directions", m.N, m.D, s.Directions)
	}
	sorted, err := s.project(m, 0)
	return Projected{Sides: []int{m.D}, sorted: [][][]float64{sorted}}, err
}

// Distance is the distance of each level, finest first.
func (p Projected) Distance(from Projected) ([]float64, error) {
	var out []float64
	if len(p.sorted) != len(from.sorted) {
		return nil, fmt.Errorf("quality: a sliced Wasserstein distance of %d levels and %d", len(p.sorted), len(from.sorted))
	}
	for l := range p.sorted {
		sum, n := 0.0, 0
		for k, a := range p.sorted[l] {
			b := from.sorted[l][k]
			if len(a) != len(b) {
				return nil, fmt.Errorf("quality: a sliced Wasserstein distance of %d patches and %d", len(a), len(b))
			}
			for i, v := range a {
				sum += math.Abs(v - b[i])
			}
			n += len(a)
		}
		out = append(out, 1000*sum/float64(n))
	}
	return out, nil
}

// patches are those of all pictures, a matrix for each level with a row for each patch,
// channel by channel.
func (s SWD) patches(p Pictures) []Matrix {
	var out []Matrix
	for _, level := range newLaplacian(p.C, p.H, p.W).levels {
		out = append(out, NewMatrix(p.N*s.Patches, level.c*patchSide*patchSide))
	}
	size := p.C * p.H * p.W
	together(s.Threads, p.N, func(pictures iter.Seq[int]) {
		pyramid := newLaplacian(p.C, p.H, p.W)
		for i := range pictures {
			pyramid.of(p.X[i*size : (i+1)*size])
			for l, level := range pyramid.levels {
				place := philox.Name{Seed: s.Seed, Purpose: philox.Sampling, Sub: philox.SamplingPatches, Step: uint32(l), Sample: uint32(i)}
				level.patches(out[l].Rows(i*s.Patches, (i+1)*s.Patches), place)
			}
		}
	})
	return out
}

// patches fills rows with patches at places of that name.
func (p plane) patches(rows Matrix, place philox.Name) {
	for k := range rows.N {
		y, x := place.Intn(2*k, p.h-patchSide+1), place.Intn(2*k+1, p.w-patchSide+1)
		row := rows.Row(k)
		for c := range p.c {
			for dy := range patchSide {
				copy(row[(c*patchSide+dy)*patchSide:][:patchSide], p.line(c, y+dy)[x:])
			}
		}
	}
}

// normalise gives each channel of the patches mean 0 and variance 1 over the set.
func normalise(m Matrix, channels, threads int) {
	per := m.D / channels
	mean, sd := make([]float64, channels), make([]float64, channels)
	together(threads, channels, func(numbers iter.Seq[int]) {
		for c := range numbers {
			mean[c], sd[c] = moments(m, c*per, (c+1)*per)
		}
	})
	together(threads, m.N, func(rows iter.Seq[int]) {
		for i := range rows {
			for c, mean := range mean {
				row := m.Row(i)[c*per : (c+1)*per]
				for k, v := range row {
					row[k] = (v - mean) / sd[c]
				}
			}
		}
	})
}

// moments are the mean and the standard deviation of some columns together; a constant
// has 1, so that it becomes 0.
func moments(m Matrix, from, to int) (mean, sd float64) {
	sum, squares := 0.0, 0.0
	for i := range m.N {
		for _, v := range m.Row(i)[from:to] {
			sum += v
			squares += v * v
		}
	}
	n := float64(m.N * (to - from))
	mean = sum / n
	sd = math.Sqrt(max(0, squares/n-mean*mean))
	if sd <= Rounding*math.Abs(mean) {
		sd = 1
	}
	return mean, sd
}

// project is the sorted projections of patches on each direction.
func (s SWD) project(patches Matrix, level int) ([][]float64, error) {
	directions := s.directions(patches.D, level)
	sorted := make([][]float64, s.Directions)
	for k := range sorted {
		sorted[k] = make([]float64, patches.N)
	}
	out := make([]float64, tile*s.Directions)
	for from := 0; from < patches.N; from += tile {
		some := patches.Rows(from, min(from+tile, patches.N))
		part := Matrix{some.N, s.Directions, out[:some.N*s.Directions]}
		if err := s.Mul(some, directions, part.X); err != nil {
			return nil, err
		}
		s.transpose(sorted, from, part)
	}
	together(s.Threads, len(sorted), func(lines iter.Seq[int]) {
		var by sorter
		for k := range lines {
			by.sort(sorted[k])
		}
	})
	return sorted, nil
}

// directions are rows of length 1.
func (s SWD) directions(d, level int) Matrix {
	m := NewMatrix(s.Directions, d)
	for k := range m.N {
		row := m.Row(k)
		philox.Name{Seed: s.Seed, Purpose: philox.Sampling, Sub: philox.SamplingDirections, Step: uint32(level), Sample: uint32(k)}.Normal(row)
		length := 0.0
		for _, v := range row {
			length += v * v
		}
		for i := range row {
			row[i] /= math.Sqrt(length)
		}
	}
	return m
}

const cacheLine = 8 // values

// transpose puts each column of m into a line, from there on. It takes as many columns
// at a time as lie side by side in the processor's memory.
func (s SWD) transpose(lines [][]float64, from int, m Matrix) {
	together(s.Threads, (m.D+cacheLine-1)/cacheLine, func(parts iter.Seq[int]) {
		for part := range parts {
			first := part * cacheLine
			some := lines[first:min(first+cacheLine, m.D)]
			for i := range m.N {
				for k, v := range m.Row(i)[first:][:len(some)] {
					some[k][from+i] = v
				}
			}
		}
	})
}
