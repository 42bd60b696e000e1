package compare

import (
	"math"

	"ebtrain/trainer/eval/quality"
)

// scale are the mean and the standard deviation of each column of a reference.
type scale struct{ mean, sd []float64 }

// scaleOf is that of m. A column of one value, which says nothing of the reference, has the
// deviation 1.
func scaleOf(m quality.Matrix) scale {
	s := scale{m.Mean(), make([]float64, m.D)}
	for i := range m.N {
		for k, v := range m.Row(i) {
			s.sd[k] += (v - s.mean[k]) * (v - s.mean[k]) / float64(m.N)
		}
	}
	for k, v := range s.sd {
		if s.sd[k] = math.Sqrt(v); s.sd[k] <= quality.Rounding*math.Abs(s.mean[k]) {
			s.sd[k] = 1 // it says nothing of what this is the scale of
		}
	}
	return s
}

// of are points (n, columns) in these units.
func (s scale) of(x []float32) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		k := i % len(s.mean)
		out[i] = float32((float64(v) - s.mean[k]) / s.sd[k])
	}
	return out
}

// openValues makes the space in which points are compared as they are.
func (j *Judge) openValues() (err error) {
	s := &space{manifold: map[int]*quality.Manifold{}}
	j.spaces = append(j.spaces, s)
	if !j.first {
		return nil
	}
	s.reference = j.matrix(j.reference.X, j.count(j.reference))
	if j.asked(Frechet) {
		s.gaussian, err = quality.FitGaussian(s.reference)
	}
	return err
}
