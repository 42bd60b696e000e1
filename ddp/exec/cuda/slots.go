package cuda

import (
	"errors"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
)

// depth is how many runs of a program may be queued.
const depth = 2

// regionAlign is the alignment of each input and output in its region.
const regionAlign = 256

// region is all inputs or all outputs of a program, one after the other, so that one
// copy moves them.
type region struct {
	at      driver.Ptr
	offsets []int
	bytes   int
}

// newRegion lays out tensors of those types.
func newRegion(list []plan.External) *region {
	r := &region{}
	for _, e := range list {
		r.offsets = append(r.offsets, r.bytes)
		r.bytes += (e.Type.Bytes() + regionAlign - 1) / regionAlign * regionAlign
	}
	return r
}

// room is its size, with that much behind it.
func (r *region) room(more int) int64 { return int64(r.bytes + more) }

// slot is the memory of one queued run: what it reads and what it leaves, pinned,
// and where its inputs wait on the device; and what was captured with that memory.
type slot struct {
	in, out *driver.Pinned
	staged  driver.Ptr    // inputs on the device, until the run begins
	arrived *driver.Event // the inputs are there
	done    *driver.Event // the outputs are in out

	plain, measured recording // runs: without and with what measures waits
	clocked         recording // one launch after the other, timed, without what brings inputs and outputs
	clock           *clock    // times of its launches, nil until they are asked for
}

// gather copies tensors into pinned memory as r lays them out.
func (r *region) gather(to []byte, from []*exec.Tensor) {
	for i, t := range from {
		copy(to[r.offsets[i]:], t.Bytes())
	}
}

// scatter copies them back.
func (r *region) scatter(to []*exec.Tensor, from []byte) {
	for i, t := range to {
		copy(t.Bytes(), from[r.offsets[i]:])
	}
}

// newSlot makes the memory of a run.
func (p *program) newSlot() (_ *slot, err error) {
	s := &slot{}
	p.slots = append(p.slots, s) // Close finds what there is of it
	if p.in.bytes > 0 {
		if s.in, err = p.b.dev.AllocPinned(p.in.bytes); err != nil {
			return nil, err
		}
		if s.staged, err = p.alloc(int64(p.in.bytes), "inputs"); err != nil {
			return nil, err
		}
	}
	if s.out, err = p.b.dev.AllocPinned(int(p.out.room(p.faultBytes()))); err != nil {
		return nil, err
	}
	for _, e := range []**driver.Event{&s.arrived, &s.done} {
		if *e, err = p.b.dev.NewEvent(false); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *slot) close() error {
	var errs []error
	for _, m := range []*driver.Pinned{s.in, s.out} {
		if m != nil {
			errs = append(errs, m.Free())
		}
	}
	for _, e := range []*driver.Event{s.arrived, s.done} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if s.clock != nil {
		errs = append(errs, s.clock.close())
	}
	return errors.Join(errs...)
}
