package host

import (
	"context"
	"errors"

	"ebtrain/collective"
	"ebtrain/collective/host/internal/reduce"
	"ebtrain/collective/schedule"
)

// vector is this rank's Vec in the collective under way.
type vector struct {
	data []byte
	size int  // bytes of an element
	part int  // bytes of one rank's part
	out  bool // it lies outside of the memory from Alloc, or is small: it is staged
}

// meeting is the collective under way among the ranks of a host: what each of
// them brings and where it lies. It is made once for all collectives, so that
// none allocates.
type meeting struct {
	*peers
	alarm    *alarm
	segments []*segment // from Alloc

	call schedule.Call   // the collective under way, as this rank sees it
	plan []schedule.Step // some of its steps
	mine localHeader     // its header

	round   uint64 // rounds of staging so far, the same on every rank
	vec     vector // of this rank
	zeros   bool   // subnormal numbers count as zeros, see item
	turn    uint32 // headers shown so far, the same on every rank
	half    uint32 // which of the two cells of a slot
	gate    gate   // of publish
	headers []localHeader
	views   [][]byte // one for each local rank
	scratch reduce.Scratch
}

func newMeeting(p *peers, a *alarm) *meeting {
	n := len(p.topo.locals())
	return &meeting{peers: p, alarm: a, headers: make([]localHeader, n), views: make([][]byte, n)}
}

func (m *meeting) count(zeros bool) { m.zeros = zeros }

// bring looks where req's vector lies, and what this rank has to do.
func (m *meeting) bring(seq uint64, req collective.Request) {
	m.vec, m.call, m.mine = vector{}, m.barrierCall(), localHeader{header: headerOf(seq, req), seg: -1}
	if req.Kind == collective.Barrier {
		return
	}
	v := vector{data: req.Vec.Bytes(), size: req.Vec.Type.Size(), out: true}
	v.part = req.Vec.Len / m.topo.size * v.size
	if len(v.data) > schedule.Small || !m.topo.oneHost() {
		for i, s := range m.segments {
			if at, ok := s.offset(m.topo.local, req.Vec.Ptr, len(v.data)); ok {
				m.mine.seg, m.mine.offset, v.out = int32(i), uint64(at), false
				break
			}
		}
	}
	m.vec = v
	c := &m.call
	c.Kind, c.Bytes, c.Elem, c.Wide, c.Outside = req.Kind, len(v.data), v.size, reduce.Accumulator(req.Vec.Type).Size(), v.out
	c.Width = m.grid.widthFor(c.Bytes)
	if req.Kind == collective.Broadcast {
		c.Root, c.RootHost = m.topo.rank == req.Root, m.topo.host == m.topo.hostOf[req.Root]
	}
}

// barrierCall is a collective without data.
func (m *meeting) barrierCall() schedule.Call {
	c := schedule.Call{Kind: collective.Barrier, Ranks: m.topo.size, Hosts: len(m.topo.hosts), Locals: len(m.headers), Local: m.topo.local}
	if m.mesh != nil {
		c.Rounds = len(m.mesh.doubling.rounds)
	}
	return c
}

// together carries out a step in which ranks wait for each other.
func (m *meeting) together(ctx context.Context, label string, s schedule.Step) error {
	switch s.Do {
	case schedule.Show:
		m.publish(m.mine, label)
	case schedule.Meet:
		return m.meet(ctx)
	case schedule.Barrier:
		return m.barrier(ctx)
	case schedule.Turn:
		m.round++
	default:
		return m.mesh.do(ctx, s)
	}
	return nil
}

// publish shows this rank's header to the others of its host and enters the
// first barrier of the collective: what was staged before can be read after it.
func (m *meeting) publish(h localHeader, name string) {
	s := m.arena.slot(m.topo.local)
	m.half = m.turn & 1
	m.turn++
	s.cell[m.half].localHeader, s.label[m.half] = h, labelOf(name)
	s.came.Store(m.turn)
	m.gate = m.arena.enter()
}

// meet waits for the ranks of this host to enter the barrier of publish, and
// compares.
func (m *meeting) meet(ctx context.Context) error {
	if err := m.pass(ctx, m.gate); err != nil {
		return err
	}
	for l := range m.headers {
		m.headers[l] = m.arena.slot(l).cell[m.half].localHeader
	}
	for l, h := range m.headers {
		if h.header != m.headers[0].header {
			started := func(l int) named { return named{m.headers[l].header, m.arena.slot(l).label[m.half]} }
			return differ(m.topo.rank, m.topo.leader(), started(0), m.topo.locals()[l], started(l))
		}
	}
	return nil
}

// errBarrier is a barrier that was aborted. The arena says why, or soon will.
var errBarrier = errors.New("barrier not passed")

// consent compares h on all ranks of all hosts, with no data behind it.
func (m *meeting) consent(ctx context.Context, h localHeader, label string) error {
	m.mine = h
	if m.mesh != nil {
		m.mesh.begin(named{h.header, labelOf(label)})
	}
	c := m.barrierCall()
	m.plan = c.Rest(c.Open(m.plan[:0]))
	for _, s := range m.plan {
		if err := m.together(ctx, label, s); err != nil {
			return err
		}
	}
	return nil
}

// barrier waits for all ranks of this host.
func (m *meeting) barrier(ctx context.Context) error { return m.pass(ctx, m.arena.enter()) }

// pass waits for all ranks of this host to enter the gate. If ctx ends first,
// the group does; the collective may be complete all the same.
func (m *meeting) pass(ctx context.Context, g gate) error {
	out, peer := m.arena.await(g, ctx.Done())
	if out == interrupted {
		m.alarm.abort(context.Cause(ctx))
		out, peer = m.arena.await(g, nil)
	}
	switch out {
	case passed:
		return nil
	case deserted:
		return m.alarm.gone(m.topo.locals()[peer], closed, nil)
	}
	return errBarrier
}

// stage copies what the other ranks need of this rank's vector, n bytes from at
// on, to where they can read it.
func (m *meeting) stage(req collective.Request, at, n int) {
	v := &m.vec
	to := m.arena.stage(m.topo.local, m.round)
	switch req.Kind {
	case collective.AllReduce:
		copy(to, v.data[at:at+n])
	case collective.ReduceScatter:
		for q := range m.topo.size {
			copy(to[q*n:], v.data[q*v.part+at:][:n])
		}
	case collective.AllGather:
		copy(to, v.data[m.topo.rank*v.part+at:][:n])
	case collective.Broadcast:
		copy(to, v.data[at:at+n])
	}
}

// view is the memory of local rank l at byte offset at of its vector, where
// that is staged the stage.
func (m *meeting) view(l, at, n int) []byte {
	h := m.headers[l]
	if !h.located() {
		return m.arena.stage(l, m.round)[:n]
	}
	from := int(h.offset) + at
	return m.segments[h.seg].of(l)[from : from+n]
}

// look points views at n bytes of all vectors of the host.
func (m *meeting) look(at, n int) {
	for l := range m.views {
		m.views[l] = m.view(l, at, n)
	}
}

// lookAtParts points views at n bytes of part q of all vectors of the host.
func (m *meeting) lookAtParts(q, at, n int) {
	for l, h := range m.headers {
		if h.located() {
			m.views[l] = m.view(l, q*m.vec.part+at, n)
		} else {
			m.views[l] = m.view(l, 0, m.topo.size*n)[q*n : q*n+n]
		}
	}
}

// job is how req's elements are combined to the end.
func (m *meeting) job(req collective.Request) reduce.Job {
	j := reduce.Job{From: req.Vec.Type, To: req.Vec.Type, Op: req.Op, Zeros: m.zeros}
	if req.Op == collective.Mean {
		j.Div = m.topo.size
	}
	return j
}

// alloc shares memory out among the ranks of this host, when all have agreed.
func (m *meeting) alloc(ctx context.Context, seq uint64, n int) (collective.Vec, error) {
	var seg *segment
	var err error
	switch {
	case m.star == nil:
		seg, err = privateSegment(n)
	case m.topo.leads(): // sent before the barrier, so it is there after it
		seg, err = m.star.share("ebtrain alloc", len(m.headers), n)
	}
	if err != nil {
		return collective.Vec{}, err
	}
	h := header{kind: collective.Allocation, len: uint64(n), seq: seq}
	if err := m.consent(ctx, localHeader{header: h, seg: -1}, ""); err != nil {
		if seg != nil {
			err = errors.Join(err, seg.unmap())
		}
		return collective.Vec{}, err
	}
	if seg == nil {
		select {
		case f := <-m.star.files:
			seg, err = takeSegment(f, len(m.headers), n)
		case <-m.alarm.raised:
			err = m.alarm.failure()
		}
	}
	return m.keep(seg, err)
}

// keep adds s to the memory from Alloc and is this rank's part of it.
func (m *meeting) keep(s *segment, err error) (collective.Vec, error) {
	if err != nil {
		return collective.Vec{}, err
	}
	s.adviseHuge()
	m.segments = append(m.segments, s)
	return collective.VecOf(s.of(m.topo.local)), nil
}

func (m *meeting) unmap() error {
	var errs []error
	for _, s := range m.segments {
		errs = append(errs, s.unmap())
	}
	m.segments = nil
	return errors.Join(errs...)
}
