// Package ddptest runs small data-parallel programs inside one test: ranks are
// goroutines, and graphs run on the reference backend.
//
// Its group is the simplest that can be right: the last rank to start a
// collective does it for all, in the order of the ranks.
package ddptest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"ebtrain/collective"
)

// Ranks runs f on every rank of a new group at the same time. The first rank
// to fail aborts the group. It returns the error of each rank.
func Ranks(size int, f func(rank int, comm collective.Comm) error) []error {
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, comm := range NewGroup(size) {
		wg.Go(func() {
			if errs[r] = f(r, comm); errs[r] != nil {
				comm.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	return errs
}

// Each is Ranks with the errors joined.
func Each(size int, f func(rank int, comm collective.Comm) error) error {
	return errors.Join(Ranks(size, f)...)
}

type group struct {
	mu      sync.Mutex
	calls   []*call // by sequence number
	size    int
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
	*group
	rank, seq int
}

// NewGroup returns the ends of a group of goroutine ranks.
func NewGroup(size int) []collective.Comm {
	g := &group{size: size, aborted: make(chan struct{})}
	comms := make([]collective.Comm, size)
	for r := range comms {
		comms[r] = &member{group: g, rank: r}
	}
	return comms
}

func (m *member) Rank() int                           { return m.rank }
func (m *member) Size() int                           { return m.size }
func (m *member) Alloc(n int) (collective.Vec, error) { return collective.VecOf(make([]byte, n)), nil }
func (m *member) Close() error                        { return nil }

func (m *member) Abort(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause == nil {
		m.cause = fmt.Errorf("%w: %w", collective.ErrAborted, cause)
		close(m.aborted)
	}
}

func (m *member) Start(req collective.Request) collective.Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seq == len(m.calls) {
		m.calls = append(m.calls, &call{reqs: make([]collective.Request, m.size), done: make(chan struct{})})
	}
	c := m.calls[m.seq]
	m.seq++
	c.reqs[m.rank] = req
	if c.n++; c.n == m.size {
		c.err = perform(c.reqs)
		close(c.done)
	}
	return collective.NewPending(pending{m, c}, collective.Ticket{})
}

type pending struct {
	m *member
	c *call
}

func (p pending) WaitFor(ctx context.Context, _ collective.Ticket) error {
	select {
	case <-p.c.done:
		return p.c.err
	case <-p.m.aborted:
	case <-ctx.Done():
		p.m.Abort(context.Cause(ctx))
	}
	// What was done is done, also where a rank that saw it first has aborted since.
	select {
	case <-p.c.done:
		return p.c.err
	default:
		return p.m.cause
	}
}

// perform does one collective for all ranks.
func perform(reqs []collective.Request) error {
	a := reqs[0]
	for _, b := range reqs {
		if a.Kind != b.Kind || a.Op != b.Op || a.Root != b.Root || a.Vec.Type != b.Vec.Type || a.Vec.Len != b.Vec.Len {
			return fmt.Errorf("%w: %v %q and %v %q", collective.ErrMismatch, a.Kind, a.Label, b.Kind, b.Label)
		}
	}
	bytes := len(a.Vec.Bytes())
	switch {
	case a.Kind == collective.Barrier:
	case a.Kind == collective.Broadcast:
		for _, b := range reqs {
			copy(b.Vec.Bytes(), reqs[a.Root].Vec.Bytes())
		}
	case a.Kind == collective.AllGather:
		part := bytes / len(reqs)
		for _, to := range reqs {
			for r, from := range reqs {
				copy(to.Vec.Bytes()[r*part:(r+1)*part], from.Vec.Bytes()[r*part:])
			}
		}
	case a.Kind != collective.AllReduce && a.Kind != collective.ReduceScatter:
		return fmt.Errorf("%v is not in the test group", a.Kind)
	case a.Vec.Type == collective.F32:
		return add[float32](reqs)
	case a.Vec.Type == collective.F64:
		return add[float64](reqs)
	default:
		return fmt.Errorf("%v of %v is not in the test group", a.Kind, a.Vec.Type)
	}
	return nil
}

func add[T float32 | float64](reqs []collective.Request) error {
	scale := T(1)
	switch reqs[0].Op {
	case collective.Sum:
	case collective.Mean:
		scale = T(len(reqs))
	default:
		return fmt.Errorf("the reduction %v is not in the test group", reqs[0].Op)
	}
	vecs := make([][]T, len(reqs))
	for r, req := range reqs {
		vecs[r] = unsafe.Slice((*T)(req.Vec.Ptr), req.Vec.Len)
	}
	for i := range vecs[0] {
		var sum T
		for _, v := range vecs {
			sum += v[i]
		}
		for r, v := range vecs {
			if v[i] = sum / scale; reqs[0].Kind == collective.ReduceScatter && r != i*len(vecs)/len(v) {
				v[i] = T(math.NaN()) // another rank's part is undefined
			}
		}
	}
	return nil
}
