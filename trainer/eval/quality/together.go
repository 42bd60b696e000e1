package quality

import (
	"iter"
	"sync"
	"sync/atomic"
)

// together has goroutines, threads of them or 1 if that is less, compute what is numbered
// 0 … n−1. Each calls do once, with the numbers that it gets, so do has a place for its
// scratch; every number is somebody's. It returns when all are done.
func together(threads, n int, do func(numbers iter.Seq[int])) {
	var taken atomic.Int64
	numbers := func(yield func(int) bool) {
		for {
			if i := int(taken.Add(1)) - 1; i >= n || !yield(i) {
				return
			}
		}
	}
	var others sync.WaitGroup
	defer others.Wait()
	for range min(threads, n) - 1 {
		others.Go(func() { do(numbers) })
	}
	do(numbers)
}
