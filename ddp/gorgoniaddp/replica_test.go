package gorgoniaddp_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
)

// n ranks on n parts of a batch train as one rank on the whole batch: after 20
// steps of Adam at rate 0.01 the weights differ only by the rounding of the
// gradients' sums, which Adam's division can magnify.
func TestRanksEqualOneBigBatch(t *testing.T) {
	const steps = 20
	for _, tc := range []struct {
		arch  architecture
		dt    tensor.Dtype
		sizes []int
		tol   float64 // absolute, on losses and weights of order 1
	}{
		{mlp, tensor.Float64, []int{2, 4}, 1e-14},
		{mlp, tensor.Float32, []int{2, 4}, 5e-6},
		{convnet, tensor.Float64, []int{2, 4}, 1e-14},
		{convnet, tensor.Float32, []int{2}, 5e-6},
	} {
		t.Run(tc.arch.name+"/"+tc.dt.String(), func(t *testing.T) {
			want := train(t, tc.arch, tc.dt, 1, steps)[0]
			if first, last := want.losses[0], want.losses[steps-1]; first == last {
				t.Fatalf("the loss stayed at %v: nothing was trained", first)
			}
			for _, size := range tc.sizes {
				got := train(t, tc.arch, tc.dt, size, steps)[size-1]
				dl, dw := distance(got.losses, want.losses), distance(got.weights, want.weights)
				t.Logf("%d ranks: losses within %.2g, weights within %.2g", size, dl, dw)
				if dl > tc.tol || dw > tc.tol {
					t.Errorf("%d ranks: losses differ by %g, weights by %g, want at most %g", size, dl, dw, tc.tol)
				}
			}
		})
	}
}

func TestReplicasBitEqualAfter50Steps(t *testing.T) {
	for _, dt := range []tensor.Dtype{tensor.Float32, tensor.Float64} {
		traces := train(t, mlp, dt, 4, 50) // ends with CheckReplicas
		for rank, tr := range traces {
			if !slices.Equal(tr.weights, traces[0].weights) || !slices.Equal(tr.losses, traces[0].losses) {
				t.Errorf("%v: rank %d and rank 0 differ after 50 steps", dt, rank)
			}
		}
		again := train(t, mlp, dt, 4, 50)
		if !slices.Equal(again[0].weights, traces[0].weights) {
			t.Errorf("%v: a second run gave other weights", dt)
		}
	}
}

// distance is the largest absolute difference; NaN counts as infinite.
func distance(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range a {
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}
