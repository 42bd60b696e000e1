package main

import (
	"slices"
	"testing"
)

// Noise is as many samples as data are measured, whatever fits into a batch, and each
// is the same in batches of any size.
func TestNoise(t *testing.T) {
	e := probing(t)
	read := func(batch int, limit int64) (all []float32, n int) {
		e.o.batch, e.o.limit = batch, limit
		err := e.noise(func(x []float32, k int) error {
			if len(x) != k*192 || k > batch {
				t.Fatalf("%d values of %d samples", len(x), k)
			}
			all, n = append(all, x...), n+k
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all, n
	}
	whole, n := read(1000, 0)
	if want, err := e.size(figures, "test"); err != nil || n != int(want) {
		t.Errorf("%d samples beside %d data, %v", n, want, err)
	}
	some, n := read(7, 45)
	if n != 45 || !slices.Equal(some, whole[:len(some)]) {
		t.Errorf("%d samples of 45, or others than in one batch", n)
	}
	if e.takes.Range != 0 && (slices.Min(whole) < 0 || slices.Max(whole) > 1) || slices.Max(whole) < 0.99 {
		t.Errorf("from %v to %v", slices.Min(whole), slices.Max(whole))
	}
}
