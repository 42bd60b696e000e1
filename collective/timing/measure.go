// Package timing times collectives on a group of ranks and checks their results while
// it does, so that a time is never that of a wrong result. All ranks call Measure with
// equal arguments; rank 0 decides when it is enough.
//
// A Batch belongs to one goroutine.
package timing

import (
	"context"
	"fmt"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/processors"
)

// Fewest repetitions there are, however long they take.
const Fewest = 5

// Plan is what is timed and for how long.
type Plan struct {
	Kind    collective.Kind
	Op      collective.Op // of reductions
	Type    collective.DType
	Iters   int           // most repetitions
	MaxTime time.Duration // most time, if there are Fewest

	// Compute is how long each rank computes before every collective, which is no part
	// of its time: so collectives come in a step, to ranks whose caches hold something
	// else and to threads that have gone to sleep. 0 has one follow the other.
	Compute time.Duration
}

// Batch is the vector of one size. Collectives are done on Comm, which may be a
// collective.Doer; Batch is none.
type Batch struct {
	collective.Comm
	Req   collective.Request
	Inner int // collectives between two looks at the clock

	before computing
}

// Measure times vectors of the size of mem, which is U8, until rank 0 has seen enough.
func Measure(ctx context.Context, c collective.Comm, p Plan, mem collective.Vec) (cost.Size, error) {
	b := &Batch{Comm: c, Inner: innerOf(mem.Len)}
	b.Req = collective.Request{Kind: p.Kind, Op: p.Op, Label: fmt.Sprintf("%d bytes", mem.Len), Vec: mem.As(p.Type)}
	times, all, err := b.repeat(ctx, p)
	if err != nil {
		return cost.Size{}, err
	}
	collectives := float64(len(times) * b.Inner * c.Size())
	s := cost.Size{Bytes: mem.Len, Times: *TimesOf(times), Wrong: all.wrong, Processor: float64(all.processor) / 1e3 / collectives}
	s.Algorithm = float64(mem.Len) / 1e3 / s.Best
	s.Bus = s.Algorithm * BusFactor(p.Kind, c.Size())
	return s, nil
}

// innerOf is how often something is done between two looks at the clock.
func innerOf(bytes int) int {
	if bytes <= 1<<20 {
		return 10
	}
	return 1
}

// TimesOf is of times in seconds, in the order in which they were measured.
func TimesOf(times []float64) *cost.Times {
	us := make([]float64, len(times))
	for i, t := range times {
		us[i] = 1e6 * t
	}
	t := cost.TimesOf(us)
	return &t
}

// BusFactor is what must move for each byte of a vector on each of n ranks, or
// hosts, in each direction.
func BusFactor(k collective.Kind, n int) float64 {
	f := float64(n-1) / float64(n)
	switch k {
	case collective.AllReduce:
		return 2 * f
	case collective.ReduceScatter, collective.AllGather:
		return f
	}
	return 1
}

// sums are those over all ranks.
type sums struct {
	wrong     int64 // elements
	processor int64 // ns of processors, during measured times
}

// repeat runs batches until rank 0 says stop, and checks some of them: the
// first ones and every sixteenth. times are in seconds, each of one collective.
func (b *Batch) repeat(ctx context.Context, p Plan) (times []float64, all sums, err error) {
	end := time.Now().Add(p.MaxTime)
	for batch, stop := 0, false; !stop; batch++ {
		checked := batch < 2 || batch%16 == 0
		took, busy, err := b.once(ctx, p, checked)
		if err != nil {
			return nil, sums{}, err
		}
		if batch > 0 { // the first one maps memory
			times = append(times, took.Seconds()/float64(b.Inner))
			all.processor += int64(busy)
		}
		if checked {
			all.wrong += b.wrong()
		}
		enough := len(times)*b.Inner >= p.Iters || time.Now().After(end) && len(times) >= Fewest
		if stop, err = b.root(ctx, enough); err != nil {
			return nil, sums{}, err
		}
	}
	total := []int64{all.wrong, all.processor}
	err = collective.Do(ctx, b.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(total)})
	return times, sums{total[0], total[1]}, err
}

// once is batch, of vectors that are filled where they have to be, when all ranks have come.
func (b *Batch) once(ctx context.Context, p Plan, checked bool) (took, busy time.Duration, err error) {
	if checked || b.Req.Kind == collective.AllReduce || b.Req.Kind == collective.ReduceScatter {
		b.Fill()
	}
	if err := collective.Do(ctx, b.Comm, collective.Request{Kind: collective.Barrier}); err != nil {
		return 0, 0, err
	}
	took, busy, err = b.batch(ctx, p.Compute)
	if err == nil && p.Kind == collective.Broadcast {
		took, err = b.slowest(ctx, took)
	}
	return took, busy, err
}

// root is what rank 0 says, on all ranks.
func (b *Batch) root(ctx context.Context, says bool) (bool, error) {
	v := []int32{0}
	if says {
		v[0] = 1
	}
	err := collective.Do(ctx, b.Comm, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(v)})
	return v[0] != 0, err
}

// slowest is the longest time of any rank. The root of a broadcast waits for nobody: it is
// through when the bytes are in buffers, of which those between hosts hold megabytes. In
// all other collectives a rank has something from each.
func (b *Batch) slowest(ctx context.Context, took time.Duration) (time.Duration, error) {
	v := []int64{int64(took)}
	err := collective.Do(ctx, b.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(v)})
	return time.Duration(v[0]), err
}

// batch does Inner collectives, and is the time that they took, and that this process
// had of processors for them. Who computes is through at the same time after each
// collective as the others, but for what that has them differ by; so what they all take
// longer than computing is the collective, also where a rank learns late of its end.
func (b *Batch) batch(ctx context.Context, compute time.Duration) (took, busy time.Duration, err error) {
	began := time.Now()
	var computed time.Duration // of processors
	at, had := began, processors.Own()
	for range b.Inner {
		if compute > 0 {
			before := processors.Own()
			b.before.until(at.Add(compute))
			computed += processors.Own() - before
		}
		if err := collective.Do(ctx, b.Comm, b.Req); err != nil {
			return 0, 0, err
		}
		if compute > 0 {
			at = time.Now()
		}
	}
	return time.Since(began) - time.Duration(b.Inner)*compute, processors.Own() - had - computed, nil
}
