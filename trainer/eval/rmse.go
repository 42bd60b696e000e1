package eval

import (
	"fmt"
	"math"
)

// SquaredError accumulates squared differences. Its zero value is ready.
type SquaredError struct {
	sums [2]float64 // of squares; number of values
}

// Add adds the squared differences of two runs of values of equal length, any
// number of images at once.
func (e *SquaredError) Add(got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("eval: %d values against %d", len(got), len(want))
	}
	e.add(got, want)
	return nil
}

// AddEach compares each image of images, which follow one another, with the
// one image got, for example a mean image.
func (e *SquaredError) AddEach(got, images []float32) error {
	n := len(got)
	if n == 0 || len(images)%n != 0 {
		return fmt.Errorf("eval: %d values are not whole images of %d", len(images), n)
	}
	for ; len(images) > 0; images = images[n:] {
		e.add(got, images[:n])
	}
	return nil
}

func (e *SquaredError) add(got, want []float32) {
	sum := 0.0
	for i, v := range got {
		d := float64(v) - float64(want[i])
		sum += d * d
	}
	e.sums[0] += sum
	e.sums[1] += float64(len(got))
}

// RMSE is √(mean squared difference over images, pixels and channels), in the
// units of the values; NaN if nothing was added.
func (e *SquaredError) RMSE() float64 { return math.Sqrt(e.sums[0] / e.sums[1]) }

// MeanImage accumulates the mean of images of one size.
type MeanImage struct {
	sums []float64 // of each value; last: number of images
}

// NewMeanImage is the mean of no images of n values each.
func NewMeanImage(n int) *MeanImage { return &MeanImage{make([]float64, n+1)} }

// Add adds images that follow one another.
func (m *MeanImage) Add(images []float32) error {
	n := len(m.sums) - 1
	if n == 0 || len(images)%n != 0 {
		return fmt.Errorf("eval: %d values are not whole images of %d", len(images), n)
	}
	for i, v := range images {
		m.sums[i%n] += float64(v)
	}
	m.sums[n] += float64(len(images) / n)
	return nil
}

// Mean is the mean image; NaN if nothing was added. Its RMSE against other
// images is the baseline that a reconstruction must beat.
func (m *MeanImage) Mean() []float32 {
	n := len(m.sums) - 1
	mean := make([]float32, n)
	for i := range mean {
		mean[i] = float32(m.sums[i] / m.sums[n])
	}
	return mean
}
