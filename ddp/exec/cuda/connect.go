package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/collective/cuda/staged"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
	"ebtrain/ddp/graph"
)

// reducer is a Comm over memory of the device, whose collectives follow what is queued
// on a stream. See package nccl.
type reducer interface {
	collective.Comm
	Agree(ctx context.Context, reqs []collective.Request) error
	Enqueue(s *driver.Stream, req collective.Request) error
	Await(ctx context.Context, e *driver.Event) error
	Capturable() bool
}

// Connect is the Comm that programs reduce over: NCCL where each rank has a GPU of its
// own, else a staging area in pinned memory. It says which.
func (b *Backend) Connect(ctx context.Context, below collective.Comm) (collective.Comm, error) {
	if below == nil {
		return nil, nil
	}
	r, how, err := b.connect(ctx, below)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.who(), b.full("", err))
	}
	b.c.Say(fmt.Sprintf("%s: ranks reduce %s", b.who(), how))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reduced = append(b.reduced, r)
	if _, ok := below.(staged.Group); ok {
		b.host = below
	}
	return r, nil
}

func (b *Backend) connect(ctx context.Context, below collective.Comm) (r reducer, how string, err error) {
	if _, ok := below.(staged.Group); !ok {
		return &borrowed{Comm: below, b: b}, "in host memory", nil
	}
	why := "as was asked"
	if b.c.Transport != TransportStaged {
		c, err := nccl.New(ctx, below, b.dev, nccl.Options{FixedOrder: b.c.Deterministic, Timeout: b.c.Timeout})
		if err == nil {
			return c, "by NCCL", nil
		}
		other := errors.Is(err, nccl.ErrMissing) || errors.Is(err, nccl.ErrShared)
		if b.c.Transport == TransportNCCL || !other {
			return nil, "", err
		}
		why = err.Error()
	}
	c, err := staged.New(ctx, below, b.dev, staged.Options{Timeout: b.c.Timeout})
	if err != nil {
		return nil, "", err
	}
	return c, fmt.Sprintf("through pinned host memory, and steps are not captured (%s)", why), nil
}

// council asks all ranks of a program that reduces how they fare with what all of them do
// now: whether nobody failed, and whether this one is the first that did. It is a
// collective of the Comm's control, in the order in which the ranks queue their runs. An
// error is the group's end.
func (p *program) council(ctx context.Context, what string, failed error) (all, first bool, err error) {
	c, ok := p.comm.(councillor)
	if !ok || !p.reducing() {
		return failed == nil, failed != nil, nil
	}
	ill := make([]byte, p.comm.Size())
	if failed != nil {
		ill[p.comm.Rank()] = 1
	}
	err = c.Within(ctx, what, func(in *host.Inside) error {
		return in.Do(ctx, collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(ill), Label: what})
	})
	r := bytes.IndexByte(ill, 1)
	return r < 0, r == p.comm.Rank(), err
}

// councillor is a Comm whose ranks can be asked, as those over groups of package host.
type councillor interface {
	Within(ctx context.Context, label string, f func(in *host.Inside) error) error
}

// reducing says whether the program reduces over a group.
func (p *program) reducing() bool { return p.comm != nil && len(p.requests) > 0 }

// deviceVec is n elements at an address of the device.
func deviceVec(at driver.Ptr, d graph.DType, n int) collective.Vec {
	v := at.Vec(n * d.Size())
	v.Type, v.Len = d, n
	return v
}
