package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// netMover moves data between ranks of several hosts: the ranks of a host meet
// in its arena, the leaders exchange, all copy the result. Its contexts are the
// runner's, which do not end.
type netMover struct {
	*meeting
	mine localHeader // of the collective under way
	met  bool        // it has been compared
}

// quick: nothing is, that goes over a network.
func (m *netMover) quick(collective.Request) bool { return false }

func (m *netMover) begin(seq uint64, req collective.Request) {
	m.mine, m.met = m.bring(seq, req), false
}

func (m *netMover) finish(ctx context.Context, req collective.Request) error {
	if len(m.vec.data) == 0 {
		return m.consent(ctx, m.mine, req.Label)
	}
	total, chunk := len(m.vec.data), m.arena.chunk
	if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
		total, chunk = m.vec.part, max(8, m.arena.chunk/m.topo.size/8*8)
	}
	for at := 0; at < total; at += chunk {
		n := min(chunk, total-at)
		m.putIn(req, at, n)
		if err := m.ready(ctx, req); err != nil {
			return err
		}
		if at == 0 && m.inPlace(req) {
			return m.reduceInPlace(ctx, req)
		}
		if err := m.piece(ctx, req, at, n); err != nil {
			return err
		}
		m.round++
	}
	return nil
}

// piece does n bytes from at on, of the vector or of every part of it, which were
// staged: they are combined among the ranks of a host, exchanged by the leaders,
// and taken out by all. In between lie barriers of the host.
func (m *netMover) piece(ctx context.Context, req collective.Request, at, n int) error {
	within, between := m.jobs(req)
	m.reduce(req, within, at, n)
	if err := m.barrier(ctx); err != nil {
		return err
	}
	if m.mesh != nil {
		if err := m.exchange(req, between, n); err != nil {
			return err
		}
	}
	if err := m.barrier(ctx); err != nil {
		return err
	}
	m.takeOut(req, at, n)
	return nil
}

// doubles is the size in bytes up to which leaders reduce by recursive doubling,
// of which each sends all of the vector in each step; beyond it each sends each its
// slice.
const doubles = 64 << 10

// doubles says whether the leaders do so. It is the same on all ranks that have
// started the same.
func (m *netMover) doubles(req collective.Request) bool {
	return req.Kind == collective.AllReduce && len(m.vec.data) <= doubles
}

// putIn shows what this rank brings: to the ranks of its host what they reduce,
// to the leader what it sends.
func (m *netMover) putIn(req collective.Request, at, n int) {
	rank, result := m.topo.rank, m.arena.result(m.round)
	switch {
	case m.ownsAll() && m.inPlace(req):
	case req.Kind == collective.AllReduce || req.Kind == collective.ReduceScatter:
		m.stage(req, at, n)
	case req.Kind == collective.AllGather:
		copy(result[m.topo.position[rank]*n:], m.vec.data[rank*m.vec.part+at:][:n])
	case rank == req.Root:
		copy(result, m.vec.data[at:at+n])
	}
}

// ready is the barrier after which staged data can be read. The first one of
// a collective also compares the ranks' requests.
func (m *netMover) ready(ctx context.Context, req collective.Request) error {
	if m.met {
		return m.barrier(ctx)
	}
	m.met = true
	m.publish(m.mine, req.Label)
	if err := m.meet(ctx); err != nil || m.mesh == nil || m.doubles(req) {
		return err
	}
	return m.mesh.ask(named{m.mine.header, labelOf(req.Label)})
}

// jobs are the two halves of a reduction: within a host, to the accumulator's
// type and without division, and then between hosts.
func (m *netMover) jobs(req collective.Request) (within, between reduce.Job) {
	whole := m.job(req)
	wide := reduce.Accumulator(whole.To)
	return reduce.Job{From: whole.From, To: wide, Op: whole.Op},
		reduce.Job{From: wide, To: whole.To, Op: whole.Op, Div: whole.Div}
}

// reduce leaves this rank's share of what the host's ranks bring in the partial
// result. There, and in the result, parts lie in the order host by host.
func (m *netMover) reduce(req collective.Request, within reduce.Job, at, n int) {
	partial, elems, wide := m.arena.partial(), n/m.vec.size, within.To.Size()
	switch req.Kind {
	case collective.AllReduce:
		lo, hi := share(elems, len(m.headers), m.topo.local)
		for l := range m.views {
			m.views[l] = m.view(l, at, n)[lo*m.vec.size : hi*m.vec.size]
		}
		within.Run(partial[lo*wide:hi*wide], m.views, &m.scratch)
	case collective.ReduceScatter:
		for q, pos := range m.topo.position {
			if pos%len(m.headers) == m.topo.local { // else another rank of this host does it
				m.lookAtParts(q, at, n)
				within.Run(partial[pos*elems*wide:(pos+1)*elems*wide], m.views, &m.scratch)
			}
		}
	}
}

// exchange is the leaders' part: it completes the result.
func (m *netMover) exchange(req collective.Request, between reduce.Job, n int) error {
	partial, result, elems := m.arena.partial(), m.arena.result(m.round), n/m.vec.size
	scratch := &m.mesh.scratch
	switch req.Kind {
	case collective.AllReduce:
		if m.doubles(req) {
			wide := between.From.Size()
			return m.mesh.double(named{m.mine.header, labelOf(req.Label)}, between, result[:n], partial[:elems*wide])
		}
		cuts := scratch.shares(elems, len(m.mesh.links))
		if err := m.mesh.reduceScatter(between, result, partial, cuts); err != nil {
			return err
		}
		return m.mesh.allGather(result, m.vec.size, cuts)
	case collective.ReduceScatter:
		return m.mesh.reduceScatter(between, result, partial, scratch.byRanks(m.topo, elems))
	case collective.AllGather:
		return m.mesh.allGather(result, 1, scratch.byRanks(m.topo, n))
	}
	return m.mesh.broadcast(result[:n], m.topo.hostOf[req.Root])
}

// takeOut copies this rank's part of the result to its vector.
func (m *netMover) takeOut(req collective.Request, at, n int) {
	rank, part, data, result := m.topo.rank, m.vec.part, m.vec.data, m.arena.result(m.round)
	switch req.Kind {
	case collective.AllReduce:
		copy(data[at:], result[:n])
	case collective.ReduceScatter:
		copy(data[rank*part+at:], result[m.topo.position[rank]*n:][:n])
	case collective.AllGather:
		for q, pos := range m.topo.position {
			if q != rank {
				copy(data[q*part+at:], result[pos*n:][:n])
			}
		}
	case collective.Broadcast:
		if rank != req.Root {
			copy(data[at:], result[:n])
		}
	}
}
