package host_test

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/host"
)

// BenchmarkAllReduce is the time of an all-reduce in memory from Alloc between
// two ranks that write their whole vectors before each, as a program does; the
// time of writing is in it. collbench, which does not write, finds every rank's
// share in its own cache.
func BenchmarkAllReduce(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			comms, err := host.NewLocal(b.Context(), 2)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var wg sync.WaitGroup
			for _, c := range comms[1:] {
				wg.Go(func() { reduceOften(b, c, size, func(i int) bool { return i < b.N }) })
			}
			reduceOften(b, comms[0], size, func(i int) bool {
				if i == 0 {
					b.ResetTimer()
				}
				return i < b.N
			})
			wg.Wait()
			b.StopTimer()
			for _, c := range comms {
				if err := c.Close(); err != nil {
					b.Error(err)
				}
			}
		})
	}
}

func reduceOften(b *testing.B, c collective.Comm, size int, more func(i int) bool) {
	mem, err := c.Alloc(size)
	if err != nil {
		b.Error(err)
		return
	}
	x := unsafe.Slice((*float32)(mem.Ptr), size/4)
	req := collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(x), Label: "benchmark"}
	for i := 0; more(i); i++ {
		for k := range x {
			x[k] = 1
		}
		if err := collective.Do(b.Context(), c, req); err != nil {
			b.Error(err)
			return
		}
	}
	if want := float32(c.Size()); x[0] != want || x[len(x)-1] != want {
		b.Errorf("got %v and %v, want %v", x[0], x[len(x)-1], want)
	}
}
