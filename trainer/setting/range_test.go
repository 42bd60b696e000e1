package setting

import (
	"math"
	"testing"
)

// Ranges have the ends that they say, and nothing that float32 has not.
func TestRanges(t *testing.T) {
	least, below1, inf := math.SmallestNonzeroFloat64, math.Nextafter(1, 0), math.Inf(1)
	beyond := math.Nextafter(math.MaxFloat32, inf)
	for _, tt := range []struct {
		name    string
		r       Range
		in, out []float64
	}{
		{"Positive", Positive, []float64{least, 1, math.MaxFloat32}, []float64{0, -least, beyond, inf, math.NaN()}},
		{"AtLeast0", AtLeast0, []float64{0, least, math.MaxFloat32}, []float64{-least, beyond, inf, math.NaN()}},
		{"Moment", Moment, []float64{0, 0.5, below1}, []float64{-least, 1, inf, math.NaN()}},
		{"Factor", Factor, []float64{least, 0.5, 1}, []float64{0, -1, math.Nextafter(1, 2), inf, math.NaN()}},
	} {
		for _, x := range tt.in {
			if err := tt.r.Check("x", x); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		for _, x := range tt.out {
			if tt.r.Check("x", x) == nil {
				t.Errorf("%s takes %v", tt.name, x)
			}
		}
	}
}

func TestChoices(t *testing.T) {
	for want, words := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := Choices(words); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
