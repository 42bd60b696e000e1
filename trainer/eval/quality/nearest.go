package quality

import (
	"fmt"
	"math"
	"slices"
)

// tile is how many samples' distances are known at a time.
const tile = 1000

// distances calls use with the squared distances of each row of x from all rows of
// y, in order, as products give them. They are those of x−c and y−c for the mean c of
// y: the same, with less rounding.
func distances(x, y Matrix, mul Products, use func(p pairs, i int, d2 []float64)) error {
	p, centre := pairs{x: x, y: y}, y.Mean()
	x, y = x.less(centre), y.less(centre)
	p.nx, p.ny = norms(x), norms(y)
	p.longest = slices.Max(p.ny)
	row, out := make([]float64, y.N), make([]float64, tile*tile)
	for from := 0; from < x.N; from += tile {
		xs := x.Rows(from, min(from+tile, x.N))
		all := make([][]float64, xs.N)
		for i := range all {
			all[i] = make([]float64, y.N)
		}
		for at := 0; at < y.N; at += tile {
			ys := y.Rows(at, min(at+tile, y.N))
			if err := mul(xs, ys, out[:xs.N*ys.N]); err != nil {
				return err
			}
			for i := range xs.N {
				copy(all[i][at:], out[i*ys.N:(i+1)*ys.N])
			}
		}
		for i := range xs.N {
			for j, v := range all[i] {
				row[j] = max(0, p.nx[from+i]+p.ny[j]-2*v)
			}
			use(p, from+i, row)
		}
	}
	return nil
}

func norms(m Matrix) []float64 {
	n := make([]float64, m.N)
	for i := range n {
		for _, v := range m.Row(i) {
			n[i] += v * v
		}
	}
	return n
}

// radii are, for each row, the squared distances of its nearest to mostth nearest
// other row, rising.
func radii(m Matrix, most int, mul Products) ([][]float64, error) {
	out := make([][]float64, m.N)
	err := distances(m, m, mul, func(p pairs, i int, d2 []float64) { out[i] = p.least(i, d2, most, i) })
	return out, err
}

// Nearest is, for each sample, how far the nearest row of train is: the root of the
// mean squared difference of their values, so that pictures of any size compare.
func Nearest(samples, train Matrix, mul Products) ([]float64, error) {
	if err := checkBoth("distances of nearest neighbours", 1, samples, train); err != nil {
		return nil, err
	}
	out := make([]float64, samples.N)
	err := distances(samples, train, mul, func(p pairs, i int, d2 []float64) {
		out[i] = math.Sqrt(p.least(i, d2, 1, -1)[0] / float64(samples.D))
	})
	return out, err
}

// Neighbours that a sample has, for each of the measures of PRDC.
const (
	forPrecision = 3 // and recall [Kynkäänniemi et al. 2019]
	forDensity   = 5 // and coverage [Naeem et al. 2020]
)

// LeastPRDC is how many samples precision and recall, density and coverage want of both
// sides: each has so many others.
const LeastPRDC = forDensity + 1

// PRDC are precision and recall, density and coverage. The first two and coverage
// are from 0 to 1; density is 1 for samples from the data's distribution, and may
// be more.
type PRDC struct{ Precision, Recall, Density, Coverage float64 }

// Manifold is data, each with its nearest others, that samples are compared with.
type Manifold struct {
	real Matrix
	ball [][]float64 // squared distances of the nearest others
	mul  Products
}

// NewManifold keeps real.
func NewManifold(real Matrix, mul Products) (*Manifold, error) {
	if err := real.check("precision and recall", LeastPRDC); err != nil {
		return nil, err
	}
	ball, err := radii(real, forDensity, mul)
	return &Manifold{real, ball, mul}, err
}

// Judge compares samples with the data. Precision is how many samples are in the
// ball of a datum, whose radius is the distance of its third neighbour, recall how
// many data are in that of a sample; density is how many balls of five neighbours a
// sample is in, a fifth for each, and coverage in how many of them a sample is.
func (m *Manifold) Judge(samples Matrix) (PRDC, error) {
	var p PRDC
	if err := checkBoth("precision and recall", LeastPRDC, m.real, samples); err != nil {
		return p, err
	}
	around, err := radii(samples, forPrecision, m.mul)
	if err != nil {
		return p, err
	}
	recalled, covered := make([]bool, m.real.N), make([]bool, m.real.N)
	inside, precise := 0, 0
	err = distances(samples, m.real, m.mul, func(p pairs, i int, d2 []float64) {
		within := false
		for j, d := range d2 {
			within = within || p.within(i, j, d, m.ball[j][forPrecision-1])
			recalled[j] = recalled[j] || p.within(i, j, d, around[i][forPrecision-1])
			if p.within(i, j, d, m.ball[j][forDensity-1]) {
				inside++
				covered[j] = true
			}
		}
		if within {
			precise++
		}
	})
	p.Precision = float64(precise) / float64(samples.N)
	p.Density = float64(inside) / forDensity / float64(samples.N)
	p.Recall, p.Coverage = share(recalled), share(covered)
	return p, err
}

func share(of []bool) float64 {
	n := 0
	for _, v := range of {
		if v {
			n++
		}
	}
	return float64(n) / float64(len(of))
}

// InceptionScore is exp of the mean divergence of each sample's class
// probabilities (a row) from their mean, over equal parts of the samples: its mean
// and standard deviation over the parts [Salimans et al. 2016].
func InceptionScore(probabilities Matrix, parts int) (mean, sd float64, err error) {
	if err := probabilities.check("an inception score", 2*parts); err != nil {
		return 0, 0, err
	}
	scores := make([]float64, parts)
	for s := range scores {
		part := probabilities.Rows(s*probabilities.N/parts, (s+1)*probabilities.N/parts)
		average, sum := part.Mean(), 0.0
		for i := range part.N {
			for k, p := range part.Row(i) {
				if p < 0 {
					return 0, 0, fmt.Errorf("quality: an inception score of probability %v", p)
				}
				if p > 0 {
					sum += p * math.Log(p/average[k])
				}
			}
		}
		scores[s] = math.Exp(sum / float64(part.N))
		mean += scores[s] / float64(parts)
	}
	for _, s := range scores {
		sd += (s - mean) * (s - mean) / float64(parts)
	}
	return mean, math.Sqrt(sd), nil
}
