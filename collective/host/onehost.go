package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
)

// hostMover moves data between ranks that all share one host, by memory alone.
type hostMover struct{ *meeting }

func (m hostMover) quick(req collective.Request) bool {
	return req.Kind == collective.Barrier || len(req.Vec.Bytes()) <= small
}

// begin stages what the others need first, and enters the barrier.
func (m hostMover) begin(seq uint64, req collective.Request) {
	h := m.bring(seq, req)
	total, chunk := m.extent(req.Kind)
	m.show(req, 0, min(total, chunk))
	m.publish(h, req.Label)
}

// show stages n bytes from at on: of an all-reduce that the ranks share out, what the
// others reduce. This rank's own share is reduced where it lies.
func (m hostMover) show(req collective.Request, at, n int) {
	v := m.vec
	if req.Kind != collective.AllReduce || !v.out || len(v.data) <= small {
		m.stage(req, at, n)
		return
	}
	lo, hi := share(n, len(m.views), m.topo.local)
	to, from := m.arena.stage(m.topo.local, m.round), v.data[at:at+n]
	copy(to[:lo], from)
	copy(to[hi:n], from[hi:])
}

// extent is what a collective walks through (all of the vector, or every part at
// the same time) and how much of that fits into a stage, in bytes.
func (m hostMover) extent(kind collective.Kind) (total, chunk int) {
	switch kind {
	case collective.ReduceScatter:
		return m.vec.part, m.arena.chunk / m.topo.size / 8 * 8
	case collective.AllGather:
		return m.vec.part, m.arena.chunk
	}
	return len(m.vec.data), min(m.arena.chunk, sumChunk)
}

// sumChunk is how much of a vector that is staged the ranks sum at a time, in bytes:
// what they read and write then, twice for each rank, stays in their caches.
const sumChunk = 256 << 10

// finish: what lies in memory from Alloc on all ranks is done where it lies,
// anything else piece by piece.
func (m hostMover) finish(ctx context.Context, req collective.Request) error {
	if err := m.meet(ctx); err != nil || req.Kind == collective.Barrier {
		return err
	}
	all, some := m.located(req)
	total, chunk := m.extent(req.Kind)
	if all {
		chunk = total
	}
	for at := 0; at < total; at += chunk {
		n := min(chunk, total-at)
		if at > 0 {
			m.show(req, at, n)
			if err := m.barrier(ctx); err != nil {
				return err
			}
		}
		if err := m.piece(ctx, req, at, n); err != nil {
			return err
		}
		m.round++
	}
	if some && req.Kind != collective.AllReduce { // nobody may change its vector while others read it
		return m.barrier(ctx)
	}
	return nil
}

// located says whether all, and whether any, of the vectors that others read
// lie in memory from Alloc.
func (m hostMover) located(req collective.Request) (all, some bool) {
	if req.Kind == collective.Broadcast {
		root := m.headers[req.Root].located()
		return root, root
	}
	all = true
	for _, h := range m.headers {
		all = all && h.located()
		some = some || h.located()
	}
	return all, some
}

// piece does n bytes from at on, after they were staged.
func (m hostMover) piece(ctx context.Context, req collective.Request, at, n int) error {
	rank, v := m.topo.rank, m.vec
	switch req.Kind {
	case collective.AllReduce:
		return m.allReduce(ctx, req, at, n)
	case collective.ReduceScatter:
		m.lookAtParts(rank, at, n)
		m.job(req).Run(v.data[rank*v.part+at:][:n], m.views, &m.scratch)
	case collective.AllGather:
		for l := range m.headers {
			if l != rank {
				copy(v.data[l*v.part+at:], m.view(l, l*v.part+at, n))
			}
		}
	case collective.Broadcast:
		if rank != req.Root {
			copy(v.data[at:at+n], m.view(req.Root, at, n))
		}
	}
	return nil
}

// allReduce: every rank reduces its share of the piece and writes it to all. A
// small vector is reduced by every rank for itself.
func (m hostMover) allReduce(ctx context.Context, req collective.Request, at, n int) error {
	m.look(at, n)
	if len(m.vec.data) <= small {
		m.job(req).Run(m.vec.data, m.views, &m.scratch)
		return nil
	}
	staged, own := m.views[m.topo.local], m.vec.data[at:at+n]
	m.views[m.topo.local] = own
	m.reduceShare(m.job(req), n)
	if err := m.barrier(ctx); err != nil {
		return err
	}
	if m.vec.out { // the others have left their shares
		lo, hi := share(n, len(m.views), m.topo.local)
		copy(own[:lo], staged)
		copy(own[hi:], staged[hi:])
	}
	return nil
}

// reduceShare reduces this rank's share of the views, of n bytes, and stores it
// to all.
func (m *meeting) reduceShare(j reduce.Job, n int) {
	lo, hi := share(n, len(m.views), m.topo.local)
	for l, view := range m.views {
		m.views[l] = view[lo:hi]
	}
	j.Everywhere(m.views, &m.scratch)
}
