package quality

import (
	"math"
	"slices"
	"testing"
)

// Values of all kinds are sorted as slices.Sort sorts them.
func TestSort(t *testing.T) {
	rng, by := seeded(11), new(sorter)
	for name, draw := range map[string]func(i int) float64{
		"normal":    func(int) float64 { return rng.NormFloat64() },
		"float32":   func(int) float64 { return float64(float32(rng.NormFloat64())) },
		"equal":     func(int) float64 { return -0.3 },
		"two":       func(int) float64 { return float64(rng.IntN(2)) },
		"crowded":   func(int) float64 { return math.Exp(40 * rng.NormFloat64()) },
		"rising":    func(i int) float64 { return float64(i) },
		"falling":   func(i int) float64 { return -float64(i * i) },
		"near":      func(int) float64 { return 1 + float64(rng.IntN(5))*0x1p-52 },
		"tiny":      func(int) float64 { return float64(rng.IntN(9)) * 5e-324 },
		"far":       func(int) float64 { return (2*rng.Float64() - 1) * math.MaxFloat64 },
		"infinite":  func(i int) float64 { return rng.NormFloat64() / float64(i%7) },
		"no number": func(i int) float64 { return math.Sqrt(rng.NormFloat64()) },
	} {
		for _, n := range []int{0, 1, 2, fewToSort - 1, fewToSort, 1000, 3001} {
			got := make([]float64, n)
			for i := range got {
				got[i] = draw(i)
			}
			want := slices.Clone(got)
			slices.Sort(want)
			by.sort(got)
			if !slices.EqualFunc(got, want, func(a, b float64) bool { return a == b || a != a && b != b }) {
				t.Errorf("%d values, %s: got %v, want %v", n, name, got, want)
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	rng, by := seeded(1), new(sorter)
	from := make([]float64, 30000)
	for i := range from {
		from[i] = float64(float32(rng.NormFloat64()))
	}
	x := make([]float64, len(from))
	for _, c := range []struct {
		name string
		sort func([]float64)
	}{{"by=buckets", by.sort}, {"by=slices", slices.Sort[[]float64]}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(8 * len(x)))
			for b.Loop() {
				copy(x, from)
				c.sort(x)
			}
		})
	}
}
