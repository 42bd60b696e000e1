package host

import (
	"context"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// hostMover moves data between ranks that all share one host, by memory alone.
type hostMover struct{ *meeting }

func (m hostMover) quick(req collective.Request) bool {
	return req.Kind == collective.Barrier || len(req.Vec.Bytes()) <= schedule.Small
}

// begin stages what the others need first, and enters the barrier.
func (m hostMover) begin(seq uint64, req collective.Request) {
	m.bring(seq, req)
	m.plan = m.call.Open(m.plan[:0])
	for _, s := range m.plan {
		switch s.Do {
		case schedule.Stage:
			m.stage(req, s.Lo, s.Hi-s.Lo)
		case schedule.Show:
			m.publish(m.mine, req.Label)
		}
	}
}

// finish: what lies in memory from Alloc on all ranks is done where it lies,
// anything else piece by piece.
func (m hostMover) finish(ctx context.Context, req collective.Request) error {
	if err := m.meet(ctx); err != nil || req.Kind == collective.Barrier {
		return err
	}
	m.call.All, m.call.Some = m.located(req)
	m.plan = m.call.Rest(m.plan[:0])
	for _, s := range m.plan {
		if err := m.do(ctx, req, s); err != nil {
			return err
		}
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

func (m hostMover) do(ctx context.Context, req collective.Request, s schedule.Step) error {
	at, n := s.Lo, s.Hi-s.Lo
	switch s.Do {
	case schedule.Stage:
		m.stage(req, at, n)
	case schedule.Reduce:
		m.reduce(req, at, n)
	case schedule.Copy:
		m.takeOut(req, at, n)
	default:
		return m.together(ctx, req.Label, s)
	}
	return nil
}

// reduce: of a piece every rank reduces its part, or its share, which it writes to
// all. A small vector is reduced by every rank for itself.
func (m hostMover) reduce(req collective.Request, at, n int) {
	v := m.vec
	if req.Kind == collective.ReduceScatter {
		m.lookAtParts(m.topo.rank, at, n)
		m.job(req).Run(v.data[m.topo.rank*v.part+at:][:n], m.views, &m.scratch)
		return
	}
	m.look(at, n)
	if len(v.data) <= schedule.Small {
		m.job(req).Run(v.data, m.views, &m.scratch)
		return
	}
	m.reduceShare(m.job(req), n)
}

// takeOut copies what others have staged, or what lies with them.
func (m hostMover) takeOut(req collective.Request, at, n int) {
	v := m.vec
	switch req.Kind {
	case collective.AllReduce:
		copy(v.data[at:at+n], m.view(m.topo.local, at, n))
	case collective.AllGather:
		for l := range m.headers {
			if l != m.topo.rank {
				copy(v.data[l*v.part+at:], m.view(l, l*v.part+at, n))
			}
		}
	case collective.Broadcast:
		copy(v.data[at:at+n], m.view(req.Root, at, n))
	}
}

// reduceShare reduces this rank's share of the views, of n bytes, and stores it
// to all.
func (m *meeting) reduceShare(j reduce.Job, n int) {
	lo, hi := schedule.Share(n, len(m.views), m.topo.local)
	for l, view := range m.views {
		m.views[l] = view[lo:hi]
	}
	j.Everywhere(m.views, &m.scratch)
}
