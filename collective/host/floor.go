package host

import (
	"fmt"
	"slices"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// Hosts says on which host each rank is, as the transport found: ranks of one
// share memory. Hosts are numbered by their lowest rank. The slice is the caller's.
func (c *Comm) Hosts() []int { return slices.Clone(c.peers.topo.hostOf) }

// Floor is what an all-reduce of v does at least, for measuring how far from it
// one is: this rank's share of the sum of what lies, in the memory from Alloc of
// every rank of its host, where v lies in this rank's, stored to all. There is no
// header, no barrier and nobody to wait for, so nothing else may touch that memory
// before all ranks have passed a barrier after it.
func (c *Comm) Floor(v collective.Vec) error {
	m := c.meeting
	for _, s := range m.segments {
		at, ok := s.offset(m.topo.local, v.Ptr, len(v.Bytes()))
		if !ok {
			continue
		}
		for l := range m.views {
			m.views[l] = s.of(l)[at : at+len(v.Bytes())]
		}
		m.reduceShare(reduce.Job{From: v.Type, To: v.Type, Op: collective.Sum}, len(v.Bytes()))
		return nil
	}
	return fmt.Errorf("%w: floor of %d bytes, expected memory from Alloc", collective.ErrInvalid, len(v.Bytes()))
}
