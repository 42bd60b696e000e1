package plan

import "slices"

// Deps is, by step, which earlier steps must be complete before it begins, where a
// device runs steps side by side: those that make what it reads, and those that
// read or write memory that it writes, scratch memory included. A step that follows
// from the others is left out; the lists are in order. The memory of a collective is
// its own from Start to Wait, and collectives start in their order. It is called
// after Allocate.
func (p *Plan) Deps() [][]int {
	h := &hazards{Plan: p, cuts: map[region][]int{}, pieces: map[region][]piece{}, above: make([]set, len(p.Steps))}
	for i := range p.Steps {
		h.accesses(i, func(at region, from, to int, _ bool) { h.cuts[at] = append(h.cuts[at], from, to) })
	}
	for at, cuts := range h.cuts {
		slices.Sort(cuts)
		h.cuts[at] = slices.Compact(cuts)
		h.pieces[at] = slices.Repeat([]piece{{writer: never}}, len(h.cuts[at]))
	}
	deps, starts := make([][]int, len(p.Steps)), []int(nil) // by number
	for i := range p.Steps {
		h.found = h.found[:0]
		h.accesses(i, func(at region, from, to int, write bool) { h.touch(i, at, from, to, write) })
		switch op := p.Steps[i].Op.(type) {
		case Start:
			if n := len(starts); n > 0 {
				h.found = append(h.found, starts[n-1])
			}
			starts = append(starts, i)
		case Wait: // though it be for a bucket of no bytes
			h.found = append(h.found, starts[op.Number])
		}
		deps[i], h.above[i] = direct(h.found, h.above, i)
	}
	return deps
}

// region is one memory.
type region struct {
	space Space
	index int
}

// piece is bytes of a memory that every step touches all or none of: the step that
// wrote them last and those that have read them since.
type piece struct {
	writer  int
	readers []int
}

// hazards is what the steps so far have done to memory.
type hazards struct {
	*Plan
	cuts   map[region][]int   // where pieces begin; the last is where the last one ends
	pieces map[region][]piece // by cut
	above  []set              // by step: all that it depends on
	found  []int              // what the step at hand depends on, in any order
}

// accesses tells what bytes step i reads and writes.
func (h *hazards) accesses(i int, tell func(at region, from, to int, write bool)) {
	value := func(v int, write bool) {
		if !h.Values[v].IsConst {
			space, index, off := h.View(v)
			tell(region{space, index}, off, off+h.Values[v].Bytes(), write)
		}
	}
	s := &h.Steps[i]
	for _, v := range s.In {
		value(v, false)
	}
	for _, v := range s.Out {
		value(v, true)
	}
	switch op := s.Op.(type) {
	case Start:
		value(op.Bucket, true)
	case Wait: // what its Start does, which is the whole bucket
		value(h.Values[s.Out[0]].Root, true)
	}
	if s.Scratch > 0 {
		tell(region{space: Arena}, s.ScratchAt, s.ScratchAt+s.Scratch, true)
	}
}

// touch notes that step i reads or writes bytes of a memory, and what it must wait
// for to do so.
func (h *hazards) touch(i int, at region, from, to int, write bool) {
	cuts, pieces := h.cuts[at], h.pieces[at]
	k, _ := slices.BinarySearch(cuts, from)
	for ; cuts[k] < to; k++ {
		q := &pieces[k]
		if q.writer != never {
			h.found = append(h.found, q.writer)
		}
		if write {
			h.found = append(h.found, q.readers...)
			q.writer, q.readers = i, q.readers[:0]
		} else {
			q.readers = append(q.readers, i)
		}
	}
}

// direct is what was found that i depends on, without what follows from the rest,
// and all that i depends on; above has the latter for those found.
func direct(found []int, above []set, i int) (deps []int, all set) {
	slices.Sort(found)
	all = make(set, len(above)/64+1)
	for k := len(found) - 1; k >= 0; k-- { // an earlier one never depends on a later one
		if j := found[k]; j != i && !all.has(j) {
			deps = append(deps, j)
			all.add(j, above[j])
		}
	}
	slices.Reverse(deps)
	return deps, all
}

// set is a set of small numbers.
type set []uint64

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

// add adds i and all of more.
func (s set) add(i int, more set) {
	s[i/64] |= 1 << (i % 64)
	for k := range s {
		s[k] |= more[k]
	}
}
