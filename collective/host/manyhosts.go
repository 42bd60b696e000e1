package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// netMover moves data between ranks of several hosts: the ranks of a host meet
// in its arena, the leaders exchange, all copy the result.
type netMover struct {
	*meeting
}

// quick: nothing is, that goes over a network.
func (m *netMover) quick(collective.Request) bool { return false }

func (m *netMover) begin(seq uint64, req collective.Request) { m.bring(seq, req) }

func (m *netMover) finish(ctx context.Context, req collective.Request) error {
	if m.mesh != nil {
		m.mesh.begin(named{m.mine.header, labelOf(req.Label)})
	}
	m.plan = m.call.Open(m.plan[:0])
	if err := m.carryOut(ctx, req); err != nil {
		return err
	}
	m.call.All = m.located()
	m.plan = m.call.Rest(m.plan[:0])
	return m.carryOut(ctx, req)
}

// located says whether the vectors of all ranks of this host lie in memory from
// Alloc. It is the same on all of them; other hosts may do otherwise, since what goes
// between hosts is the same.
func (m *netMover) located() bool {
	for _, h := range m.headers {
		if !h.located() {
			return false
		}
	}
	return true
}

// carryOut does the steps of the plan. After an error in a collective that is done in
// place what still comes from other hosts is not written to the vector any more: it may be the
// caller's memory. To memory from Alloc other ranks of this host may still write.
func (m *netMover) carryOut(ctx context.Context, req collective.Request) error {
	for _, s := range m.plan {
		if err := m.do(ctx, req, s); err != nil {
			if m.mesh != nil && m.call.InPlace() {
				m.mesh.carrier.giveUp()
			}
			return err
		}
	}
	return nil
}

func (m *netMover) do(ctx context.Context, req collective.Request, s schedule.Step) error {
	at, n := s.Lo, s.Hi-s.Lo
	switch s.Do {
	case schedule.Stage:
		m.putIn(req, at, n)
		return nil
	case schedule.Reduce:
		m.reduce(req, at, n)
		return nil
	case schedule.Copy:
		m.takeOut(req, at, n)
		return nil
	case schedule.Pack, schedule.Post, schedule.Send, schedule.Combine:
		if n > 0 {
			m.aim(req, at, n)
		}
	}
	return m.together(ctx, req.Label, s)
}

// putIn shows what this rank brings: to the ranks of its host what they reduce,
// to the leader what it sends.
func (m *netMover) putIn(req collective.Request, at, n int) {
	result := m.arena.result(m.round)
	switch req.Kind {
	case collective.AllGather:
		copy(result[m.position()[m.topo.rank]*n:], m.vec.data[m.topo.rank*m.vec.part+at:][:n])
	case collective.Broadcast:
		copy(result, m.vec.data[at:at+n])
	default:
		m.stage(req, at, n)
	}
}

// jobs are the two halves of a reduction: within a host, to the accumulator's
// type and without division, and then between hosts.
func (m *netMover) jobs(req collective.Request) (within, between reduce.Job) {
	whole := m.job(req)
	wide := reduce.Accumulator(whole.To)
	within, between = whole.Within(), whole
	within.To, between.From = wide, wide
	return within, between
}

// position is the number of each rank in the order in which parts lie in the partial result
// and in the result: host by host, and in a grid its columns one after the other.
func (m *netMover) position() []int {
	if m.call.Gridded() {
		return m.grid.position
	}
	return m.topo.position
}

// byRanks are the bounds of slices of which a host has the parts of its ranks, of n elements
// each.
func (m *netMover) byRanks(n int) []int {
	if m.call.Gridded() {
		return m.grid.deal(n)
	}
	return m.mesh.scratch.byRanks(m.topo, n)
}

// reduce leaves this rank's share of what the host's ranks bring in the partial
// result, or in place, in the leader's vector.
func (m *netMover) reduce(req collective.Request, at, n int) {
	within, _ := m.jobs(req)
	partial, elems, wide := m.arena.partial(), n/m.vec.size, within.To.Size()
	switch req.Kind {
	case collective.AllReduce:
		lo, hi := schedule.Share(elems, len(m.headers), m.topo.local)
		for l := range m.views {
			m.views[l] = m.view(l, at, n)[lo*m.vec.size : hi*m.vec.size]
		}
		to := partial[lo*wide : hi*wide]
		if m.call.InPlace() {
			to = m.views[0]
		}
		within.Run(to, m.views, &m.scratch)
	case collective.ReduceScatter:
		for q, pos := range m.position() {
			if pos%len(m.headers) == m.topo.local { // else another rank of this host does it
				m.lookAtParts(q, at, n)
				within.Run(partial[pos*elems*wide:(pos+1)*elems*wide], m.views, &m.scratch)
			}
		}
	}
}

// aim has the leaders exchange n bytes from at on, of the vector or of every part.
func (m *netMover) aim(req collective.Request, at, n int) {
	x := &m.mesh.exchange
	if x.aimed && x.at == at {
		return
	}
	_, between := m.jobs(req)
	*x = exchange{named: x.named, aimed: true, at: at, job: between, wide: between.From.Size(), narrow: m.vec.size,
		from: m.arena.partial(), to: m.arena.result(m.round)}
	scratch, hosts := &m.mesh.scratch, len(m.mesh.links)
	switch req.Kind {
	case collective.AllReduce:
		if m.call.Doubled() {
			return
		}
		if m.call.InPlace() {
			vec := m.vec.data[at : at+n]
			x.from, x.to = vec, vec
		}
		if m.call.Gridded() {
			x.cuts = m.grid.cut(n / m.vec.size)
			return
		}
		x.cuts = scratch.shares(n/m.vec.size, hosts)
	case collective.ReduceScatter:
		x.cuts = m.byRanks(n / m.vec.size)
	case collective.AllGather:
		x.narrow, x.cuts = 1, m.byRanks(n)
	case collective.Broadcast:
		x.narrow, x.cuts, x.root = 1, scratch.shares(n, hosts), m.topo.hostOf[req.Root]
	}
}

// takeOut copies this rank's part of the result to its vector.
func (m *netMover) takeOut(req collective.Request, at, n int) {
	rank, part, data, result := m.topo.rank, m.vec.part, m.vec.data, m.arena.result(m.round)
	switch req.Kind {
	case collective.AllReduce:
		if m.call.InPlace() {
			result = m.view(0, at, n)
		}
		copy(data[at:], result[:n])
	case collective.ReduceScatter:
		copy(data[rank*part+at:], result[m.position()[rank]*n:][:n])
	case collective.AllGather:
		for q, pos := range m.position() {
			if q != rank {
				copy(data[q*part+at:], result[pos*n:][:n])
			}
		}
	case collective.Broadcast:
		copy(data[at:], result[:n])
	}
}
