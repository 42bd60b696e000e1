package micro

import (
	"math/rand/v2"
	"testing"
)

// TestScaled holds the kernel of integers to its definition, for all numbers of
// rows and some of columns and depths, and to leaving the rest of C alone.
func TestScaled(t *testing.T) {
	k, ok := OfIntegers()
	if !ok {
		t.Skip("no products of 16-bit integers on this CPU")
	}
	for rows := 1; rows <= k.MR; rows++ {
		for _, cols := range []int{1, 5, 16, 17, k.NR - 1, k.NR} {
			for _, depth := range []int{1, 2, 7, 64} {
				for _, add := range []bool{false, true} {
					testScaled(t, k, depth, rows, cols, add)
				}
			}
		}
	}
}

func testScaled(t *testing.T, k Scaled, depth, rows, cols int, add bool) {
	const most = 4000 // so that 128 products of two fit
	word := func() uint32 {
		return uint32(uint16(rand.IntN(2*most)-most)) | uint32(rand.IntN(2*most)-most)<<16
	}
	rs, ks, width := depth+3, 1, k.NR+5
	if depth%2 == 0 {
		rs, ks = 1, k.MR+2
	}
	a, b := make([]uint32, k.MR*rs+depth*ks), make([]uint32, depth*k.NR)
	fill(a, word)
	fill(b, word)
	sa, sb, c := make([]float32, rows), make([]float32, k.NR), make([]float32, k.MR*width)
	for _, f := range [][]float32{sa, sb, c} {
		fill(f, rand.Float32)
	}
	var off [MaxMR]int
	for r := range off {
		off[r] = r * width
	}
	got := append([]float32(nil), c...)
	k.Run(depth, a, rs, ks, b, got, &off, sa, sb, rows, cols, add)
	for r := range k.MR {
		for j := range width {
			want := float64(c[r*width+j])
			if r < rows && j < cols {
				if !add {
					want = 0
				}
				want += float64(sa[r]) * float64(sb[j]) * float64(dot(a[r*rs:], ks, b[j:], k.NR, depth))
			}
			if d := float64(got[r*width+j]) - want; d > 1e-6*(1+abs(want)) || -d > 1e-6*(1+abs(want)) {
				t.Fatalf("depth %d, %d rows, %d columns, add %t: element (%d,%d) is %v, want %v", depth, rows, cols, add, r, j, got[r*width+j], want)
			}
		}
	}
}

func dot(a []uint32, as int, b []uint32, bs, n int) (sum int64) {
	for l := range n {
		x, y := a[l*as], b[l*bs]
		sum += int64(int16(x))*int64(int16(y)) + int64(int16(x>>16))*int64(int16(y>>16))
	}
	return sum
}

func fill[T any](s []T, draw func() T) {
	for i := range s {
		s[i] = draw()
	}
}

func abs(x float64) float64 { return max(x, -x) }
