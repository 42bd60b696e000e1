package gorgoniaddp_test

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"ebtrain/collective"
)

// group is the slowest possible collective.Comm: the ranks are goroutines, and
// the last one to start a collective does it for all, in rank order.
type group struct {
	mu      sync.Mutex
	size    int
	calls   []*call // by sequence number
	cause   error
	aborted chan struct{}
}

type call struct {
	reqs []collective.Request // by rank
	n    int                  // ranks that have started it
	done chan struct{}
	err  error
}

type member struct {
	g    *group
	rank int
	seq  int
}

func newGroup(size int) []collective.Comm {
	g := &group{size: size, aborted: make(chan struct{})}
	comms := make([]collective.Comm, size)
	for r := range comms {
		comms[r] = &member{g: g, rank: r}
	}
	return comms
}

func (m *member) Rank() int                           { return m.rank }
func (m *member) Size() int                           { return m.g.size }
func (m *member) Alloc(n int) (collective.Vec, error) { return collective.VecOf(make([]byte, n)), nil }
func (m *member) Close() error                        { return nil }

func (m *member) Abort(cause error) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	if m.g.cause == nil {
		m.g.cause = fmt.Errorf("%w: %w", collective.ErrAborted, cause)
		close(m.g.aborted)
	}
}

func (m *member) Start(req collective.Request) collective.Pending {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.seq == len(g.calls) {
		g.calls = append(g.calls, &call{reqs: make([]collective.Request, g.size), done: make(chan struct{})})
	}
	c := g.calls[m.seq]
	c.reqs[m.rank] = req
	c.n++
	p := collective.NewPending(pending{m, c}, collective.Ticket{Seq: uint64(m.seq), Kind: req.Kind, Label: req.Label})
	m.seq++
	if c.n == g.size && g.cause == nil {
		c.err = reduce(c.reqs)
		close(c.done)
	}
	return p
}

type pending struct {
	m *member
	c *call
}

func (p pending) WaitFor(ctx context.Context, t collective.Ticket) error {
	var err error
	select {
	case <-p.c.done:
		err = p.c.err
	default:
		select {
		case <-p.c.done:
			err = p.c.err
		case <-p.m.g.aborted:
			err = p.m.g.cause
		case <-ctx.Done():
			p.m.Abort(context.Cause(ctx))
			err = p.m.g.cause
		}
	}
	if err != nil {
		return &collective.Error{Kind: t.Kind, Label: t.Label, Seq: t.Seq, Rank: p.m.rank, Peer: -1, Err: err}
	}
	return nil
}

// reduce does one collective for all ranks.
func reduce(reqs []collective.Request) error {
	a := reqs[0]
	for _, b := range reqs {
		if a.Kind != b.Kind || a.Op != b.Op || a.Root != b.Root || a.Vec.Type != b.Vec.Type || a.Vec.Len != b.Vec.Len {
			return collective.ErrMismatch
		}
	}
	switch a.Kind {
	case collective.Broadcast:
		for _, b := range reqs {
			copy(b.Vec.Bytes(), reqs[a.Root].Vec.Bytes())
		}
	case collective.AllGather:
		part := len(a.Vec.Bytes()) / len(reqs)
		for _, to := range reqs {
			for r, from := range reqs {
				copy(to.Vec.Bytes()[r*part:][:part], from.Vec.Bytes()[r*part:])
			}
		}
	case collective.AllReduce:
		if a.Op != collective.Mean {
			return fmt.Errorf("reduction %v is not in this test's group", a.Op)
		}
		if a.Vec.Type == collective.F32 {
			mean[float32](reqs)
		} else {
			mean[float64](reqs)
		}
	default:
		return fmt.Errorf("%v is not in this test's group", a.Kind)
	}
	return nil
}

func mean[T float32 | float64](reqs []collective.Request) {
	vecs := make([][]T, len(reqs))
	for r, req := range reqs {
		vecs[r] = elems[T](req.Vec)
	}
	for i := range vecs[0] {
		var sum T
		for _, v := range vecs {
			sum += v[i]
		}
		for _, v := range vecs {
			v[i] = sum / T(len(vecs))
		}
	}
}

func elems[T float32 | float64](v collective.Vec) []T {
	return unsafe.Slice((*T)(v.Ptr), v.Len)
}

// ranks runs f once for each rank, at the same time, and returns the errors.
func ranks(ctx context.Context, size int, f func(ctx context.Context, comm collective.Comm) error) []error {
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, comm := range newGroup(size) {
		wg.Go(func() { errs[r] = f(ctx, comm) })
	}
	wg.Wait()
	return errs
}
