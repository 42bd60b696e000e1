package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// ownsAll says whether this rank's vector is all that its host brings.
func (m *netMover) ownsAll() bool { return len(m.headers) == 1 }

// inPlace says whether the leader of this host can exchange its own vector where it
// lies, in place of a copy: when the ranks have met, and only for what all hosts
// exchange by slices. It is the same on all ranks of a host; other hosts may do
// otherwise, since what goes between them is the same.
func (m *netMover) inPlace(req collective.Request) bool {
	if req.Kind != collective.AllReduce || m.doubles(req) || reduce.Accumulator(req.Vec.Type) != req.Vec.Type {
		return false
	}
	for _, h := range m.headers {
		if !h.located() && !m.ownsAll() {
			return false
		}
	}
	return true
}

// reduceInPlace is the rest of an all-reduce when the ranks have met: they reduce
// into the leader's vector, which the leaders exchange and all copy.
func (m *netMover) reduceInPlace(ctx context.Context, req collective.Request) error {
	within, between := m.jobs(req)
	n, vec := len(m.vec.data), m.vec.data
	if !m.ownsAll() {
		vec = m.view(0, 0, n)
		lo, hi := share(n/m.vec.size, len(m.headers), m.topo.local)
		lo, hi = lo*m.vec.size, hi*m.vec.size
		for l := range m.views {
			m.views[l] = m.view(l, 0, n)[lo:hi]
		}
		within.Run(m.views[0], m.views, &m.scratch)
		if err := m.barrier(ctx); err != nil {
			return err
		}
	}
	if m.mesh != nil {
		if err := m.mesh.allReduce(between, vec, m.arena.chunk); err != nil {
			return err
		}
	}
	if m.ownsAll() {
		return nil
	}
	if err := m.barrier(ctx); err != nil {
		return err
	}
	if !m.topo.leads() {
		copy(m.vec.data, vec)
	}
	return m.barrier(ctx) // the leader may not change its vector while others read it
}

// allReduce reduces vec over all hosts in place, chunk by chunk. Slices travel in the
// order of reduceScatter and allGather of each chunk, but the next chunk's leave
// before the last one's results are there. The vector's elements have the type of
// its accumulator. After an error nobody writes to vec any more: it may be the
// caller's memory.
func (m *mesh) allReduce(j reduce.Job, vec []byte, chunk int) error {
	err := m.reduceChunks(j, vec, chunk)
	if err != nil {
		for _, o := range m.others {
			m.links[o].giveUp()
		}
	}
	return err
}

func (m *mesh) reduceChunks(j reduce.Job, vec []byte, chunk int) error {
	size := j.To.Size()
	out, in := m.scratch.lists(len(m.links))
	for at := 0; at < len(vec); at += chunk {
		part := vec[at:min(at+chunk, len(vec))]
		cuts := m.scratch.shares(len(part)/size, len(m.links))
		slice := func(h int) []byte { return part[cuts[h]*size : cuts[h+1]*size] }
		own := slice(m.host)
		for _, o := range m.others {
			out[o], in[o] = slice(o), m.scratch.buffer(o, len(own))
		}
		if err := m.send(out, in); err != nil {
			return err
		}
		if err := m.received(m.scratch.late); err != nil { // of the chunk before
			return err
		}
		m.post(out) // what is sent to o comes back from it, reduced
		if err := m.received(in); err != nil {
			return err
		}
		in[m.host] = own
		j.Run(own, in, &m.scratch.tree)
		in[m.host] = nil
		m.scratch.keep(out)
		for _, o := range m.others {
			out[o] = own
		}
		if err := m.write(out); err != nil {
			return err
		}
	}
	err := m.received(m.scratch.late)
	clear(m.scratch.late)
	return err
}
