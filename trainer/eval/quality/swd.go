package quality

import (
	"fmt"
	"math"
	"slices"

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
	pyramids := make([][]plane, p.N)
	for i := range pyramids {
		pyramids[i] = laplacian(p.planes(i))
	}
	for l := range pyramids[0] {
		level := pyramids[0][l]
		patches := s.patches(pyramids, l)
		normalise(patches, p.C)
		sorted, err := s.project(patches, l)
		if err != nil {
			return out, err
		}
		out.sorted = append(out.sorted, sorted)
		out.Sides = append(out.Sides, min(level.h, level.w))
	}
	return out, nil
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

// plane is a picture of several channels, one after another.
type plane struct {
	c, h, w int
	x       []float64
}

func (p Pictures) planes(i int) plane {
	n := p.C * p.H * p.W
	out := plane{p.C, p.H, p.W, make([]float64, n)}
	for k, v := range p.X[i*n : (i+1)*n] {
		out.x[k] = float64(v)
	}
	return out
}

// laplacian is the pyramid: details of each level, and the coarsest as it is.
func laplacian(p plane) []plane {
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

// patches are those of a level of all pictures, a row each, channel by channel.
func (s SWD) patches(pyramids [][]plane, level int) Matrix {
	first := pyramids[0][level]
	out := NewMatrix(len(pyramids)*s.Patches, first.c*patchSide*patchSide)
	for i, pyramid := range pyramids {
		p := pyramid[level]
		place := philox.Name{Seed: s.Seed, Purpose: philox.Sampling, Sub: 3, Step: uint32(level), Sample: uint32(i)}
		for k := range s.Patches {
			y, x := place.Intn(2*k, p.h-patchSide+1), place.Intn(2*k+1, p.w-patchSide+1)
			row := out.Row(i*s.Patches + k)
			for c := range p.c {
				for dy := range patchSide {
					copy(row[(c*patchSide+dy)*patchSide:][:patchSide], p.x[(c*p.h+y+dy)*p.w+x:])
				}
			}
		}
	}
	return out
}

// normalise gives each channel of the patches mean 0 and variance 1 over the set.
func normalise(m Matrix, channels int) {
	per := m.D / channels
	for c := range channels {
		sum, squares := 0.0, 0.0
		for i := range m.N {
			for _, v := range m.Row(i)[c*per : (c+1)*per] {
				sum += v
				squares += v * v
			}
		}
		n := float64(m.N * per)
		mean := sum / n
		sd := math.Sqrt(max(0, squares/n-mean*mean))
		if sd == 0 {
			sd = 1 // a constant channel is 0
		}
		for i := range m.N {
			row := m.Row(i)[c*per : (c+1)*per]
			for k, v := range row {
				row[k] = (v - mean) / sd
			}
		}
	}
}

// project is the sorted projections of patches on each direction.
func (s SWD) project(patches Matrix, level int) ([][]float64, error) {
	directions := NewMatrix(s.Directions, patches.D)
	sorted := make([][]float64, s.Directions)
	for k := range sorted {
		d := directions.Row(k)
		philox.Name{Seed: s.Seed, Purpose: philox.Sampling, Sub: 4, Step: uint32(level), Sample: uint32(k)}.Normal(d)
		length := 0.0
		for _, v := range d {
			length += v * v
		}
		for i := range d {
			d[i] /= math.Sqrt(length)
		}
		sorted[k] = make([]float64, patches.N)
	}
	out := make([]float64, tile*s.Directions)
	for from := 0; from < patches.N; from += tile {
		some := patches.Rows(from, min(from+tile, patches.N))
		if err := s.Mul(some, directions, out[:some.N*s.Directions]); err != nil {
			return nil, err
		}
		for i := range some.N {
			for k := range sorted {
				sorted[k][from+i] = out[i*s.Directions+k]
			}
		}
	}
	for _, line := range sorted {
		slices.Sort(line)
	}
	return sorted, nil
}
