package control

import (
	"math"
	"slices"
	"testing"

	"ebtrain/trainer/eval/feature"
)

var size = feature.Size{C: 2, H: 6, W: 5}

func TestNoise(t *testing.T) {
	x := Noise(50, size, 3)
	var sum, squares float64
	for _, v := range x {
		if v < -1 || v > 1 {
			t.Fatalf("value %v", v)
		}
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(x))
	if n != 3000 || !(math.Abs(sum/n) <= 0.05) || !(math.Abs(squares/n-1./3) <= 0.03) {
		t.Errorf("%v values, mean %v, mean square %v", n, sum/n, squares/n)
	}
	if !slices.Equal(x[:60], Noise(1, size, 3)) || slices.Equal(x, Noise(50, size, 4)) {
		t.Error("noise is not named by its seed and picture")
	}
}

// The sum of a blurred point is its own, and it spreads as far as it should, in
// its channel only; a flat picture stays.
func TestBlurred(t *testing.T) {
	s := feature.Size{C: 2, H: 21, W: 23}
	x := make([]float32, s.Len())
	x[10*s.W+11] = 1
	y := Blurred(x, s)
	var sum, down, right float64
	for i, v := range y[:s.H*s.W] {
		r, c := float64(i/s.W-10), float64(i%s.W-11)
		sum += float64(v)
		down += r * r * float64(v)
		right += c * c * float64(v)
	}
	if !(math.Abs(sum-1) <= 1e-5) || !(math.Abs(down-2) <= 1e-5) || !(math.Abs(right-2) <= 1e-5) {
		t.Errorf("sum %v, variances %v and %v, want 1, 2 and 2", sum, down, right)
	}
	for _, v := range y[s.H*s.W:] {
		if v != 0 {
			t.Fatal("the other channel changed")
		}
	}
	clear(x)
	for y := range s.H {
		x[y*s.W+s.W-1] = 1
	}
	for c, v := range Blurred(x, s)[10*s.W : 10*s.W+10] {
		if v != 0 {
			t.Errorf("column %d has %v of the line at the other edge", c, v)
		}
	}
	flat := slices.Repeat([]float32{0.5}, size.Len())
	for _, v := range Blurred(flat, size) {
		if !(math.Abs(float64(v)-0.5) <= 1e-6) {
			t.Fatalf("flat picture has %v", v)
		}
	}
}

func TestShuffled(t *testing.T) {
	x := Noise(3, size, 1)
	y := Shuffled(x, size, 2)
	pixels := func(x []float32) (all [][2]float32) {
		for i := range 30 {
			all = append(all, [2]float32{x[i], x[30+i]})
		}
		slices.SortFunc(all, func(a, b [2]float32) int { return int(math.Copysign(1, float64(a[0]-b[0]))) })
		return all
	}
	for i := range 3 {
		a, b := x[i*60:(i+1)*60], y[i*60:(i+1)*60]
		if slices.Equal(a, b) || !slices.Equal(pixels(a), pixels(b)) {
			t.Errorf("picture %d has other pixels, or all in place", i)
		}
	}
	same := slices.Concat(x[:60], x[:60])
	if two := Shuffled(same, size, 2); slices.Equal(two[:60], two[60:]) || slices.Equal(two, Shuffled(same, size, 3)) {
		t.Error("pictures are shuffled alike, or those of two seeds are")
	}
}

func TestOneClass(t *testing.T) {
	labels := []int64{2, 1, 2, 0, 2, 1}
	chosen, repeated := OneClass(labels, 3, 1)
	if slices.Sort(chosen); repeated || !slices.Equal(chosen, []int{0, 2, 4}) {
		t.Errorf("%v, %v", chosen, repeated)
	}
	many := make([]int64, 100)
	a, _ := OneClass(many, 9, 1)
	if b, _ := OneClass(many, 9, 2); slices.Equal(a, b) {
		t.Errorf("two seeds choose %v", a)
	}
	if chosen, repeated := OneClass(labels, 7, 1); !repeated || len(chosen) != 7 || labels[chosen[6]] != 2 {
		t.Errorf("%v, %v", chosen, repeated)
	}
}
