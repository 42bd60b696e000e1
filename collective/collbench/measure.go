package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/collective/cost"
	"ebtrain/collective/processors"
	"ebtrain/data/atomicfile"
	"ebtrain/launch/cliflag"
)

// measureAll measures every size; rank 0 prints.
func measureAll(ctx context.Context, p place, opt options, w io.Writer) (err error) {
	r := unmeasured(p, opt)
	t := table{w: w, kind: opt.kind, hosts: len(r.Ranks), floor: opt.kind == collective.AllReduce && slices.Max(r.Ranks) > 1}
	if p.Rank() != 0 {
		t.w = io.Discard
	}
	told, err := filesOf(p, opt)
	if err != nil {
		return err
	}
	sizes := opt.whole(p.Size())
	most := slices.Max(sizes)
	own, shared, err := t.vectors(p, opt, most)
	if err != nil {
		return err
	}
	s := &stream{}
	if t.hosts > 1 {
		if s, err = openStreams(ctx, p, most); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	if err := t.head(r); err != nil {
		return err
	}
	if t.hosts == 1 && t.floor {
		if t.least, err = p.host.NewLeast(min(most, leastBytes)); err != nil {
			return err
		}
		if r.Meeting, err = leastOf(ctx, p, opt, t.least, collective.Vec{Type: collective.U8}); err != nil {
			return err
		}
	}
	for _, n := range sizes {
		size, err := t.measure(ctx, p, opt, own.Slice(0, n), shared, s)
		if err != nil {
			return err
		}
		r.Sizes = append(r.Sizes, size)
	}
	r.Fit, r.FloorFit, r.StreamFit = fits(r.Sizes)
	if err := t.finish(p, opt, r, told); err != nil {
		return err
	}
	return wrongs(p, r)
}

// unmeasured is the report before anything is measured: of what, where and by whom.
func unmeasured(p place, opt options) cost.Report {
	r := cost.Report{Version: cost.Version, Collective: opt.kind.String(), Type: opt.dtype.String(), Op: opt.op.String(), Memory: opt.memory,
		World: p.Size(), Ranks: p.ranksOnHosts(), Network: "auto", Machines: p.machines, Begun: time.Now().UTC(), Program: cliflag.Version("collbench"), CPUs: p.cores, Load: processors.Load()}
	if opt.apart {
		r.Network = opt.values["network"]
	}
	return r
}

// filesOf finds, before all is measured, what is wrong with files that rank 0 reads and
// writes. It returns what is foretold from those that it reads, nil if that was not asked.
func filesOf(p place, opt options) (told *foretold, err error) {
	if p.Rank() != 0 {
		return nil, nil
	}
	if opt.json != "" {
		if err := atomicfile.CheckPut(opt.json); err != nil {
			return nil, fmt.Errorf("--json %s: %w", opt.json, err)
		}
	}
	if len(opt.predict) > 0 {
		return foretell(opt.predict)
	}
	return nil, nil
}

// vectors are the memory of the largest vector that is moved, and of that of the floor,
// which lies in memory from Alloc.
func (t table) vectors(p place, opt options, most int) (own, shared collective.Vec, err error) {
	if own, err = vectorMemory(p, opt, most); err != nil {
		return own, own, err
	}
	if opt.memory != "alloc" && t.floor {
		shared, err = p.Alloc(most)
		return own, shared, err
	}
	return own, own, nil
}

// finish prints what came out, and rank 0 writes it.
func (t table) finish(p place, opt options, r cost.Report, told *foretold) error {
	if err := t.foot(r); err != nil {
		return err
	}
	if told != nil {
		text, err := told.text(r)
		if err == nil {
			_, err = fmt.Fprint(t.w, text)
		}
		if err != nil {
			return err
		}
	}
	if p.Rank() == 0 && opt.json != "" {
		if err := atomicfile.Put(opt.json, r.Encode); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	return nil
}

// wrongs is an error if any element was wrong.
func wrongs(p place, r cost.Report) error {
	var wrong int64
	for _, s := range r.Sizes {
		wrong += s.Wrong
	}
	if wrong > 0 {
		return fmt.Errorf("rank %d: %d elements were wrong", p.Rank(), wrong)
	}
	return nil
}

// fits are the lines through the medians.
func fits(sizes []cost.Size) (all, floor, stream *cost.Line) {
	var points [3][]cost.Point
	for _, s := range sizes {
		for i, times := range []*cost.Times{&s.Times, s.Floor, s.Stream} {
			if times != nil {
				points[i] = append(points[i], cost.Point{Bytes: s.Bytes, US: times.Median})
			}
		}
	}
	return cost.Fit(points[0]), cost.Fit(points[1]), cost.Fit(points[2])
}

// vectorMemory is memory of n bytes to reduce.
func vectorMemory(c collective.Comm, opt options, n int) (collective.Vec, error) {
	if opt.memory == "alloc" {
		return c.Alloc(n)
	}
	words := make([]uint64, (n+7)/8) // aligned for every type
	return collective.Vec{Type: collective.U8, Len: n, Ptr: unsafe.Pointer(unsafe.SliceData(words))}, nil
}
