package loader

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"testing"

	"ebtrain/data"
)

// lean is a source that allocates nothing.
type lean struct {
	*fake
	schema data.Schema
	spans  []data.Span
}

func (l lean) ReadBlock(i int, dst *data.Block) error {
	dst.Grow(l.schema, l.spans[i].N)
	for j := range l.spans[i].N {
		dst.Labels[j] = int64(j)
	}
	return nil
}

// TestBatchesAllocateNothing goes through several epochs of a data set of more
// pools than are kept in memory. The first two make what the others use. The
// runtime may have some objects for itself (a thread that it starts has a
// dozen): one for four batches, and the least of a few counts is taken.
func TestBatchesAllocateNothing(t *testing.T) {
	for _, prefetch := range []int{0, 2} {
		for _, shuffle := range []bool{false, true} {
			t.Run(fmt.Sprintf("prefetch=%d/shuffle=%v", prefetch, shuffle), func(t *testing.T) {
				f := newFake(3, 1001, 500, 799) // 768 blocks: three pools
				src := lean{f, f.Schema(), f.Layout().Spans()}
				c := Config{Seed: 1, Batch: 24, World: 2, Rank: 1, Shuffle: shuffle, ShuffleMemory: 256 * 2 * 3 * 12, Flip: true, Prefetch: prefetch}
				l, err := New(src, c)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = l.Close() }()                 // what it prefetches does not matter
				defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes objects of its own
				epochs := func(n int64) {
					for range n * l.Steps() {
						if _, err := l.Next(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				epochs(2)
				n, most := int64(math.MaxInt64), 3*l.Steps()/4
				for tries := 0; n > most && tries < 4; tries++ {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					epochs(3)
					runtime.ReadMemStats(&after)
					n = min(n, int64(after.Mallocs-before.Mallocs))
				}
				t.Logf("%d objects for %d batches", n, 3*l.Steps())
				if n > most {
					t.Errorf("%d objects were allocated for %d batches, want at most %d", n, 3*l.Steps(), most)
				}
			})
		}
	}
}
