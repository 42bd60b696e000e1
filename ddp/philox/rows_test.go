package philox

import (
	"math"
	"slices"
	"testing"
)

// Rows drawn together have the bits of rows drawn alone, whatever their length and
// number, also where the number of the sample wraps around.
func TestRows(t *testing.T) {
	for _, n := range []Name{
		{Seed: 7, Purpose: Testing, Step: 3, Sample: 5, Sub: 2},
		{Seed: math.MaxUint64, Purpose: math.MaxUint16, Sub: math.MaxUint16, Step: math.MaxUint32, Sample: math.MaxUint32 - 4},
	} {
		for cols := 1; cols < 40; cols++ {
			for _, rows := range []int{0, 1, 7, 8, 9, 25} {
				checkRows(t, n, rows, cols)
			}
		}
	}
}

// checkRows compares rows of n with streams.
func checkRows(t *testing.T, n Name, rows, cols int) {
	t.Helper()
	normal, uniform := make([]float64, rows*cols), make([]float64, rows*cols)
	n.NormalRows(normal, cols)
	n.UniformRows(uniform, cols)
	one, want := n, make([]float64, cols)
	for r := range rows {
		one.Sample = n.Sample + uint32(r)
		if one.Normal(want); !slices.Equal(normal[r*cols:(r+1)*cols], want) {
			t.Fatalf("%+v, normal row %d of %d, %d columns: got %v, want %v", n, r, rows, cols, normal[r*cols:(r+1)*cols], want)
		}
		if one.Uniform(want); !slices.Equal(uniform[r*cols:(r+1)*cols], want) {
			t.Fatalf("%+v, uniform row %d of %d, %d columns: got %v, want %v", n, r, rows, cols, uniform[r*cols:(r+1)*cols], want)
		}
	}
}
