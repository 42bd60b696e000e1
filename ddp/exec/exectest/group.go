package exectest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"ebtrain/collective"
)

// NewGroup returns the ends of a group of n ranks inside this process, for
// tests: goroutines that reduce floats (Sum, Mean) to all or to parts, gather, and keep barriers. Sums
// are taken by halves, each rounded, as those of communicators.
func NewGroup(n int) []collective.Comm {
	g := &group{size: n, ended: make(chan struct{}), slots: map[uint64]*slot{}}
	comms := make([]collective.Comm, n)
	for r := range comms {
		comms[r] = &member{group: g, rank: r}
	}
	return comms
}

// group is what the ranks share.
type group struct {
	size  int
	mu    sync.Mutex
	slots map[uint64]*slot // collectives under way, by number
	ended chan struct{}
	cause error
}

// slot is one collective: who has come, and whether it is done.
type slot struct {
	reqs []collective.Request
	come int
	done chan struct{}
}

// member is one rank's end.
type member struct {
	*group
	rank int
	seq  uint64
}

func (m *member) Rank() int                           { return m.rank }
func (m *member) Size() int                           { return m.size }
func (m *member) Alloc(n int) (collective.Vec, error) { return collective.VecOf(make([]byte, n)), nil }
func (m *member) Close() error                        { return nil }

func (g *group) Abort(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.abort(cause)
}

func (g *group) abort(cause error) {
	if g.cause == nil {
		g.cause = cause
		close(g.ended)
	}
}

func (m *member) Start(req collective.Request) collective.Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[m.seq]
	if s == nil {
		s = &slot{reqs: make([]collective.Request, m.size), done: make(chan struct{})}
		m.slots[m.seq] = s
	}
	s.reqs[m.rank] = req
	if s.come++; s.come == m.size {
		delete(m.slots, m.seq)
		if err := reduce(s.reqs); err != nil {
			m.abort(err)
		} else {
			close(s.done)
		}
	}
	t := collective.Ticket{Seq: m.seq, Kind: req.Kind, Label: req.Label}
	m.seq++
	return collective.NewPending(pending{m, s}, t)
}

type pending struct {
	m    *member
	slot *slot
}

func (p pending) WaitFor(ctx context.Context, t collective.Ticket) error {
	select {
	case <-p.slot.done:
		return nil
	case <-ctx.Done():
		p.m.Abort(context.Cause(ctx))
	case <-p.m.ended:
	}
	err := fmt.Errorf("%w: %w", collective.ErrAborted, p.m.cause)
	return &collective.Error{Kind: t.Kind, Label: t.Label, Seq: t.Seq, Rank: p.m.rank, Peer: -1, Err: err}
}

// reduce does one collective for all ranks.
func reduce(reqs []collective.Request) error {
	first := reqs[0]
	for r, q := range reqs {
		if q.Kind != first.Kind || q.Op != first.Op || q.Vec.Type != first.Vec.Type || q.Vec.Len != first.Vec.Len {
			return fmt.Errorf("%w: rank 0 started %s %q of %d %s, rank %d %s %q of %d %s", collective.ErrMismatch,
				first.Kind, first.Label, first.Vec.Len, first.Vec.Type, r, q.Kind, q.Label, q.Vec.Len, q.Vec.Type)
		}
	}
	switch {
	case first.Kind == collective.Barrier:
		return nil
	case first.Kind == collective.AllGather:
		gather(reqs)
		return nil
	case first.Kind != collective.AllReduce && first.Kind != collective.ReduceScatter || first.Op != collective.Sum && first.Op != collective.Mean:
		return fmt.Errorf("the test group does not offer %s %s", first.Kind, first.Op)
	}
	for i := range first.Vec.Len {
		sum := sumOf(reqs, i)
		if first.Op == collective.Mean {
			sum /= float64(len(reqs))
		}
		for r, q := range reqs {
			switch {
			case first.Kind == collective.AllReduce || i*len(reqs)/first.Vec.Len == r:
				set(q.Vec, i, sum)
			default: // another rank's part is undefined then
				set(q.Vec, i, math.NaN())
			}
		}
	}
	return nil
}

// gather copies each rank's part of its vector to all.
func gather(reqs []collective.Request) {
	part := len(reqs[0].Vec.Bytes()) / len(reqs)
	for r, from := range reqs {
		for _, to := range reqs {
			copy(to.Vec.Bytes()[r*part:][:part], from.Vec.Bytes()[r*part:])
		}
	}
}

// sumOf adds element i of all ranks.
func sumOf(reqs []collective.Request, i int) float64 {
	n := len(reqs)
	if n == 1 {
		return at(reqs[0].Vec, i)
	}
	sum := sumOf(reqs[:n/2], i) + sumOf(reqs[n/2:], i)
	if reqs[0].Vec.Type != collective.F64 { // partial sums of bfloat16s are float32s
		return float64(float32(sum))
	}
	return sum
}

func at(v collective.Vec, i int) float64 {
	switch p := unsafe.Add(v.Ptr, i*v.Type.Size()); v.Type {
	case collective.F32:
		return float64(*(*float32)(p))
	case collective.F64:
		return *(*float64)(p)
	case collective.BF16:
		return float64(collective.FromBF16(*(*uint16)(p)))
	}
	return math.NaN()
}

func set(v collective.Vec, i int, x float64) {
	switch p := unsafe.Add(v.Ptr, i*v.Type.Size()); v.Type {
	case collective.F32:
		*(*float32)(p) = float32(x)
	case collective.F64:
		*(*float64)(p) = x
	case collective.BF16:
		*(*uint16)(p) = collective.ToBF16(float32(x))
	}
}
