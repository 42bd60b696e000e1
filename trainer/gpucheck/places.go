package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// places is how many arrays sums are timed over.
const places = 8

// placed is a check of part d: the sums of a batch norm, by one kernel over arrays that lie
// in several places. In steps they have taken from 25 to 48 µs, of one text (results/README.md):
// here it is to be seen whether that is the place.
func placed(ctx context.Context, r *report, images int) error {
	name := fmt.Sprintf("sums of a batch norm of %d images of 32x32, 96 channels, in bfloat16, in %d places", images, places)
	return r.do(ctx, "d", name, func() (string, map[string]any, error) {
		took, err := placedTimes(ctx, r.Devices[0].Ordinal, images)
		if err != nil {
			return "", nil, err
		}
		us := func(i int) float64 { return ms(took[i]) * 1e3 }
		return "", map[string]any{"least_us": us(0), "us": us(places / 2), "most_us": us(places - 1)}, nil
	})
}

// sumsPlan is a plan of one step: the sum of each channel, and that of the squares of what
// is left without the mean.
func sumsPlan(images int) *plan.Plan {
	const side, channels = 32, 96
	dims := graph.D(images, side, side, channels)
	of := plan.Access{Dims: []int{images * side * side, channels}, Strides: []int{0, 1}}
	f := &plan.Fused{DType: graph.F32, Dims: dims, Loads: []plan.Access{{}}, Sums: []plan.Reduction{
		{Fn: graph.ReduceSum, Reg: 0, Access: of}, {Fn: graph.ReduceSum, Reg: 0, Centred: true, Access: of}}}
	sum := plan.Value{DType: graph.F32, Dims: graph.D(1, 1, 1, channels)}
	p := &plan.Plan{Values: []plan.Value{{DType: graph.BF16, Dims: dims}, sum, sum}, Steps: []plan.Step{{Op: f, In: []int{0}, Out: []int{1, 2}}}}
	for v := range p.Values {
		p.Values[v].Root, p.Values[v].Space, p.Values[v].Index, p.Values[v].Last = v, plan.Input, v, true
	}
	return p
}

// placedTimes are what the sums over each array take in the median run, the least first.
func placedTimes(ctx context.Context, ordinal, images int) (took []time.Duration, err error) {
	b, p := &fewBench{ctx: ctx, flush: 1}, sumsPlan(images)
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ordinal); err != nil {
		return nil, err
	}
	m, err := b.make(p)
	if err != nil {
		return nil, err
	}
	for range places { // each is free only after all
		memory, free, e := b.placedMemory(p, m)
		if e != nil {
			return nil, e
		}
		defer func() { err = errors.Join(err, free()) }()
		t, e := b.placedTime(p, m, memory)
		if e != nil {
			return nil, e
		}
		took = append(took, t)
	}
	slices.Sort(took)
	return took, nil
}

// placedMemory is an array and its sums' memory, in which nothing is a number yet.
func (b *fewBench) placedMemory(p *plan.Plan, m made) (_ kernel.Memory, free func() error, err error) {
	counters := m.list[len(m.list)-1].Counters
	sums := p.Values[1].Bytes()
	bytes := m.scratch + counters + 2*sums
	x, err := b.d.Alloc(int64(p.Values[0].Bytes()))
	if err != nil {
		return kernel.Memory{}, nil, err
	}
	rest, err := b.d.Alloc(int64(bytes))
	if err != nil {
		return kernel.Memory{}, nil, errors.Join(err, b.d.Free(x))
	}
	at := uint64(rest)
	memory := kernel.Memory{Scratch: at, Counters: at + uint64(m.scratch)}
	memory.Value = func(v int) uint64 {
		return []uint64{uint64(x), at + uint64(bytes-2*sums), at + uint64(bytes-sums)}[v]
	}
	free = func() error { return errors.Join(b.d.Free(x), b.d.Free(rest)) }
	if err := cmp.Or(b.s.Memset(rest, 0xff, int64(bytes)), b.s.Memset(driver.Ptr(memory.Counters), 0, int64(counters))); err != nil {
		return kernel.Memory{}, nil, errors.Join(err, free())
	}
	return memory, free, nil
}

// placedTime is what the sums of an array take that is written before, as by a layer before:
// another number in each run, of which the sums must be. So a block that adds up what another
// one's were in the run before is seen.
func (b *fewBench) placedTime(p *plan.Plan, m made, memory kernel.Memory) (time.Duration, error) {
	fill := func(run int) byte { return byte(0x38 + run) }
	write := func(run int) error {
		return b.s.Memset(driver.Ptr(memory.Value(0)), fill(run), int64(p.Values[0].Bytes()))
	}
	return b.behind(write, m, memory, func(run int) error {
		return b.placedRight(p, memory, float64(collective.FromBF16(uint16(fill(run))*0x101)))
	})
}

// placedRight says whether the sums are those of an array of that number.
func (b *fewBench) placedRight(p *plan.Plan, memory kernel.Memory, number float64) (err error) {
	n := p.Values[1].Dims.Len()
	got, err := b.d.AllocPinned(4 * 2 * n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, got.Free()) }()
	if err := cmp.Or(b.s.CopyOut(got, 0, driver.Ptr(memory.Value(1)), len(got.Bytes())), b.s.Sync(b.ctx)); err != nil {
		return err
	}
	want := number * float64(p.Values[0].Dims.Len()/n)
	for i := range 2 * n {
		v, w, bound := float64(math.Float32frombits(binary.LittleEndian.Uint32(got.Bytes()[4*i:]))), want, 1e-5*want
		if i >= n { // squares of what is left without the mean
			w, bound = 0, bound*number
		}
		if !(math.Abs(v-w) <= bound) {
			return fmt.Errorf("sum %d of %d is %v, want %v", i, 2*n, v, w)
		}
	}
	return nil
}
