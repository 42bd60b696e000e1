package moves

import (
	"math"
	"slices"
	"testing"

	"ebtrain/collective/subnormal"
	"ebtrain/ddp/exec/cpu/array/arraytest"
	"ebtrain/ddp/graph"
)

func TestMixFloat32(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 64, 100, 131} {
		var from []source[float32]
		for taps := range 6 {
			got, want := make([]float32, n+1), make([]float32, n+1)
			got[n], want[n] = 7, 7 // a guard
			mixFloat32(got[:n], from, pixels{count: 1, n: n})
			mix(want[:n], from, pixels{count: 1, n: n})
			for i := range got {
				if d := math.Abs(float64(got[i] - want[i])); d > 1e-6 {
					t.Fatalf("%d sources, element %d of %d: %v, want %v", taps, i, n, got[i], want[i])
				}
			}
			x := make([]float32, n)
			for i := range x {
				x[i] = float32((i*7+taps*13)%23) / 23
			}
			from = append(from, source[float32]{x, 1 / float32(taps+2)})
		}
	}
}

// FuzzMix holds the mixer of float32 to the plain one, but for rounding, on
// pixels of any length between guard words, and demands that a number has the
// same bits wherever it lies.
func FuzzMix(f *testing.F) {
	arraytest.Seeds(f)
	f.Fuzz(func(t *testing.T, n uint16, raw []byte) {
		arraytest.EitherWay(t, func() { checkMix(t, n, raw) })
	})
}

func checkMix(t *testing.T, n uint16, raw []byte) {
	t.Helper()
	k, taps := int(n%150), int(n/150)%5
	x := arraytest.Floats(raw, (k+1)*taps)
	var from []source[float32]
	for i := range taps {
		from = append(from, source[float32]{x[i*(k+1):][:k], x[i*(k+1)+k]})
	}
	got, check := arraytest.Guarded(make([]float32, k))
	mixFloat32(got, from, pixels{count: 1, n: k})
	if err := check(); err != nil {
		t.Fatalf("%d sources: %v", taps, err)
	}
	want := make([]float32, k)
	mix(want, from, pixels{count: 1, n: k})
	least := 0x1p-149 // what a product or a sum may lose whatever its size
	if subnormal.Zeros() {
		least = 0x1p-126
	}
	for i := range got {
		size := 0.0
		alone := append([]source[float32](nil), from...)
		for s := range alone {
			alone[s].x = alone[s].x[i : i+1]
			size += math.Abs(float64(alone[s].x[0]) * float64(alone[s].w))
		}
		if d := math.Abs(float64(got[i]) - float64(want[i])); size < math.MaxFloat32/2 && !(d <= size*0x1p-20+least*8) {
			t.Fatalf("%d sources, element %d of %d: %v, want %v", taps, i, k, got[i], want[i])
		}
		one := []float32{0}
		mixFloat32(one, alone, pixels{count: 1, n: 1})
		if _, ok := arraytest.SameBits(one, got[i:i+1]); !ok {
			t.Fatalf("%d sources, element %d of %d: %v, and %v alone", taps, i, k, got[i], one[0])
		}
	}
}

// TestMixPixels: the pixels of a run have the bits that each has alone, and nothing
// lies between them that is written.
func TestMixPixels(t *testing.T) {
	for _, n := range []int{1, 3, 8, 16, 24, 64, 70, 130} {
		p := pixels{count: 5, n: n, dy: 2*n + 3, dx: n + 1}
		var from []source[float32]
		for taps := range 5 {
			x := make([]float32, p.count*p.dx+n)
			for i := range x {
				x[i] = float32(math.Sin(float64(i*7 + taps)))
			}
			got, want := make([]float32, p.count*p.dy), make([]float32, p.count*p.dy)
			for i := range got {
				got[i], want[i] = 7, 7
			}
			mixFloat32(got, from, p)
			for i := range p.count {
				alone := append([]source[float32](nil), from...)
				for s := range alone {
					alone[s].x = alone[s].x[i*p.dx:][:n]
				}
				mixFloat32(want[i*p.dy:][:n], alone, pixels{count: 1, n: n})
			}
			if i, ok := arraytest.SameBits(got, want); !ok {
				t.Fatalf("%d numbers, %d sources: element %d is %v, want %v", n, taps, i, got[i], want[i])
			}
			from = append(from, source[float32]{x, 1 / float32(taps+3)})
		}
	}
}

// TestRuns: every index is in one run, whose taps are where it says, and rows of pools and
// of enlargements have few runs.
func TestRuns(t *testing.T) {
	pool := func(k, stride, pad, in int) [][]tap { return windowTaps(k, stride, pad, 1, in, (in+2*pad-k)/stride+1) }
	for name, c := range map[string]struct {
		taps [][]tap
		most int
	}{
		"none":                  {nil, 0},
		"pool":                  {pool(2, 2, 0, 32), 1},
		"pool that overlaps":    {pool(3, 1, 1, 32), 3},
		"unpool":                {adjoint(pool(2, 2, 0, 32), 32), 2},
		"unpool with a margin":  {adjoint(pool(2, 2, 0, 33), 33), 3},
		"unpool that overlaps":  {adjoint(pool(3, 2, 1, 32), 32), 4},
		"unpool with dilation":  {adjoint(windowTaps(2, 5, 0, 6, 32, 6), 32), 24}, // an earlier window reaches a later pixel
		"nearest":               {upTaps(graph.Nearest, 2, 16), 2},
		"bilinear":              {upTaps(graph.Bilinear, 2, 16), 4},
		"adjoint of bilinear":   {adjoint(upTaps(graph.Bilinear, 2, 16), 16), 3},
		"more than runs can do": {upTaps(graph.Nearest, 5, 3), 15},
	} {
		runs, seen := runsOf(c.taps), make([]bool, len(c.taps))
		if len(runs) > c.most {
			t.Errorf("%s: %d runs, want at most %d", name, len(runs), c.most)
		}
		for _, r := range runs {
			if r.move < 0 {
				t.Errorf("%s: the taps of run %+v go back, where no operand reaches", name, r)
			}
			for i := range r.count {
				at := r.first + i*r.step
				if seen[at] {
					t.Errorf("%s: index %d is in two runs", name, at)
				}
				seen[at] = true
				want := slices.Clone(c.taps[r.first])
				for k := range want {
					want[k].at += i * r.move
				}
				if !slices.Equal(want, c.taps[at]) {
					t.Errorf("%s: index %d has taps %v, its run says %v", name, at, c.taps[at], want)
				}
			}
		}
		if i := slices.Index(seen, false); i >= 0 {
			t.Errorf("%s: index %d is in no run", name, i)
		}
	}
}
