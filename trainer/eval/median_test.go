package eval

import (
	"math"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{4, 1, 3, 2}, 2.5}, {[]float64{5, 1, 2}, 2}, {[]float64{0.1}, 0.1}, {[]float64{math.Inf(1), 0, 0}, 0}, {[]float64{1, nan, 2}, nan}, {nil, nan},
	} {
		was := slices.Clone(tt.of)
		got := Median(tt.of)
		if got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("median of %v is %v, want %v", tt.of, got, tt.want)
		}
		if len(was) > 0 && !math.IsNaN(tt.want) && !slices.Equal(was, tt.of) {
			t.Errorf("%v became %v", was, tt.of)
		}
	}
}
