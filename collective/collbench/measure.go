package main

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/cost"
)

// bench is the vector of one size. Collectives are done on Comm, which may be a
// collective.Doer; bench is none.
type bench struct {
	collective.Comm
	req   collective.Request
	inner int // collectives between two looks at the clock
}

// measure times one size until rank 0 has seen enough.
func measure(ctx context.Context, c collective.Comm, opt options, mem collective.Vec) (cost.Size, error) {
	b := &bench{Comm: c, inner: innerOf(mem.Len)}
	b.req = collective.Request{Kind: opt.kind, Op: opt.op, Label: fmt.Sprintf("%d bytes", mem.Len), Vec: mem.As(opt.dtype)}
	times, wrong, err := b.repeat(ctx, opt)
	if err != nil {
		return cost.Size{}, err
	}
	s := cost.Size{Bytes: mem.Len, Times: *timesOf(times), Wrong: wrong}
	s.Algorithm = float64(mem.Len) / 1e3 / s.Best
	s.Bus = s.Algorithm * busFactor(opt.kind, c.Size())
	return s, nil
}

// innerOf is how often something is done between two looks at the clock.
func innerOf(bytes int) int {
	if bytes <= 1<<20 {
		return 10
	}
	return 1
}

// timesOf is of times in seconds, in the order in which they were measured.
func timesOf(times []float64) *cost.Times {
	us := make([]float64, len(times))
	for i, t := range times {
		us[i] = 1e6 * t
	}
	t := cost.TimesOf(us)
	return &t
}

// busFactor is what must move for each byte of a vector on each of n ranks, or
// hosts, in each direction.
func busFactor(k collective.Kind, n int) float64 {
	f := float64(n-1) / float64(n)
	switch k {
	case collective.AllReduce:
		return 2 * f
	case collective.ReduceScatter, collective.AllGather:
		return f
	}
	return 1
}

// vectorMemory is memory of n bytes to reduce.
func vectorMemory(c collective.Comm, opt options, n int) (collective.Vec, error) {
	if opt.memory == "alloc" {
		return c.Alloc(n)
	}
	words := make([]uint64, (n+7)/8) // aligned for every type
	return collective.Vec{Type: collective.U8, Len: n, Ptr: unsafe.Pointer(unsafe.SliceData(words))}, nil
}

// repeat runs batches until rank 0 says stop, and checks some of them: the
// first ones and every sixteenth.
func (b *bench) repeat(ctx context.Context, opt options) (times []float64, wrong int64, err error) {
	end := time.Now().Add(opt.maxTime)
	stop := make([]int32, 1)
	for batch := 0; ; batch++ {
		checked := batch < 2 || batch%16 == 0
		if checked || b.req.Kind == collective.AllReduce || b.req.Kind == collective.ReduceScatter {
			b.fill()
		}
		if err := collective.Do(ctx, b.Comm, collective.Request{Kind: collective.Barrier}); err != nil {
			return nil, 0, err
		}
		begin := time.Now()
		for range b.inner {
			if err := collective.Do(ctx, b.Comm, b.req); err != nil {
				return nil, 0, err
			}
		}
		if batch > 0 { // the first one maps memory
			times = append(times, time.Since(begin).Seconds()/float64(b.inner))
		}
		if checked {
			wrong += b.wrong()
		}
		stop[0] = 0
		if len(times)*b.inner >= opt.iters || time.Now().After(end) && len(times) >= fewest {
			stop[0] = 1
		}
		if err := collective.Do(ctx, b.Comm, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(stop)}); err != nil {
			return nil, 0, err
		}
		if stop[0] != 0 {
			break
		}
	}
	total := []int64{wrong}
	err = collective.Do(ctx, b.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(total)})
	return times, total[0], err
}
