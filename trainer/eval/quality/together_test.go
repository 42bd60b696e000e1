package quality

import (
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// Every number is given once, to no more goroutines than were asked for.
func TestTogether(t *testing.T) {
	for _, c := range []struct{ threads, n, want int }{{0, 3, 1}, {1, 5, 1}, {4, 0, 1}, {4, 2, 2}, {4, 1000, 4}} {
		var calls atomic.Int64
		given := make([]int, c.n)
		together(c.threads, c.n, func(numbers iter.Seq[int]) {
			calls.Add(1)
			for i := range numbers {
				given[i]++
			}
		})
		if int(calls.Load()) != c.want || slices.ContainsFunc(given, func(n int) bool { return n != 1 }) {
			t.Errorf("%d numbers, %d threads: %d goroutines, given %v", c.n, c.threads, calls.Load(), given)
		}
	}
}

// With any number of threads a kernel distance is the same, to the bit.
func TestKIDOfThreads(t *testing.T) {
	rng := seeded(12)
	x, y := normal(rng, 61, 7), normal(rng, 45, 7)
	want := math.NaN()
	for _, threads := range []int{0, 1, 2, 5, 20} {
		got, err := KID{Subsets: 9, Size: 33, Seed: 2, Threads: threads, Mul: Plain}.Of(x, y)
		if threads == 0 {
			want = got
		}
		if got != want || err != nil {
			t.Errorf("%d threads: %v, %v; want %v", threads, got, err, want)
		}
	}
}

// failing are products that fail the nth time.
func failing(nth int, err error) Products {
	return func(x, y Matrix, out []float64) error {
		if nth--; nth == 0 {
			return err
		}
		return Plain(x, y, out)
	}
}

// An error of the products is what Project and Of return, and no goroutine is left.
func TestProductsFail(t *testing.T) {
	rng, broken := seeded(10), errors.New("no products")
	pictures, x := drawn(rng, 3, 1, 32, 32), normal(rng, 30, 5)
	ball, err := radii(x, forDensity, Plain)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for nth := 1; nth <= 6; nth++ {
		_, err := KID{Subsets: 2, Size: 20, Threads: 4, Mul: failing(nth, broken)}.Of(x, x)
		if !errors.Is(err, broken) {
			t.Errorf("products %d of a kernel distance: %v", nth, err)
		}
		if nth > 2 { // levels; tiles of the samples and of what is compared with the data
			continue
		}
		if _, err := (&Manifold{x, ball, failing(nth, broken)}).Judge(x); !errors.Is(err, broken) {
			t.Errorf("products %d of precision and recall: %v", nth, err)
		}
		_, err = SWD{Patches: 3, Directions: 4, Threads: 4, Mul: failing(nth, broken)}.Project(pictures)
		if !errors.Is(err, broken) {
			t.Errorf("products %d of a sliced distance: %v", nth, err)
		}
	}
	if _, err := (SWD{Directions: 4, Mul: failing(1, broken)}).ProjectRows(x); !errors.Is(err, broken) {
		t.Errorf("products of a sliced distance of rows: %v", err)
	}
	if _, err := NewManifold(x, failing(1, broken)); !errors.Is(err, broken) {
		t.Errorf("products of the data's neighbours: %v", err)
	}
	if _, err := Nearest(x, x, failing(1, broken)); !errors.Is(err, broken) {
		t.Errorf("products of nearest neighbours: %v", err)
	}
	for wait := 0; runtime.NumGoroutine() > before; wait++ { // one that is done may be counted a moment longer
		if wait == 1000 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}
