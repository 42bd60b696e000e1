package colltest

import (
	"bytes"
	"fmt"
	"testing"

	"ebtrain/collective"
)

// alloc tests the memory itself.
func (f Factory) alloc(t *testing.T) {
	comms := f.group(t, min(3, f.MaxRanks))
	each(comms, func(c collective.Comm) error {
		for _, n := range []int{0, 1, 63, 4096, 5000, 3 << 20} {
			mem, err := c.Alloc(n)
			if err != nil {
				return err
			}
			if mem.Type != collective.U8 || mem.Len != n {
				return fmt.Errorf("alloc of %d bytes gave %v[%d]", n, mem.Type, mem.Len)
			}
			b := f.Wrap(c, mem)
			if n > 0 && uintptr(b.Ptr())%64 != 0 {
				return fmt.Errorf("alloc of %d bytes at %p, want a multiple of 64", n, b.Ptr())
			}
			got := make([]byte, n)
			b.Read(got)
			if err := filled(got, 0); err != nil {
				return fmt.Errorf("alloc of %d bytes: %w", n, err)
			}
			b.Write(bytes.Repeat([]byte{byte(c.Rank() + 1)}, n)) // another rank's memory must not change
			if err := do(c, collective.Request{Kind: collective.Barrier}); err != nil {
				return err
			}
			b.Read(got)
			if err := filled(got, byte(c.Rank()+1)); err != nil {
				return fmt.Errorf("alloc of %d bytes: %w: ranks overlap", n, err)
			}
			if err := do(c, collective.Request{Kind: collective.Barrier}); err != nil {
				return err
			}
		}
		for i := range 200 { // ranks hurry ahead of each other
			mem, err := c.Alloc(i)
			if err != nil || mem.Len != i {
				return fmt.Errorf("alloc %d of many: %d bytes, %w", i, mem.Len, err)
			}
		}
		if _, err := c.Alloc(-1); err == nil {
			return fmt.Errorf("alloc of -1 bytes succeeded")
		}
		return nil
	}).ok(t)
}

// filled demands that all bytes are x.
func filled(mem []byte, x byte) error {
	if bytes.Count(mem, []byte{x}) == len(mem) {
		return nil
	}
	for i, b := range mem {
		if b != x {
			return fmt.Errorf("byte %d is %d, want %d", i, b, x)
		}
	}
	return nil
}

// reuse overwrites a vector as soon as its collective is complete on this
// rank: no other rank may still read it.
func (f Factory) reuse(t *testing.T) {
	const length = 240 << 10
	repeats := 8
	if f.brief() {
		repeats = 2
	}
	n := min(4, f.MaxRanks)
	comms := f.group(t, n)
	shelves := f.shelves(t, comms, 4*length)
	vec := collective.Vec{Type: collective.F32, Len: length}
	for _, req := range []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec},
		{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: vec},
		{Kind: collective.AllGather, Vec: vec},
		{Kind: collective.Broadcast, Root: n - 1, Vec: vec},
	} {
		for _, p := range []place{ordinary, allocated, mixed} {
			each(comms, func(c collective.Comm) error {
				b := shelves[c.Rank()].at(p, c.Rank())
				junk := bytes.Repeat([]byte{guardByte}, 4*length)
				for range repeats {
					if err := rampThen(c, b, req, junk); err != nil {
						return err
					}
				}
				return nil
			}).ok(t)
			if t.Failed() {
				t.Fatalf("%s, %s memory", req, p)
			}
		}
	}
}
