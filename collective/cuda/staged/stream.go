package staged

import (
	"context"
	"fmt"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// Agree compares the collectives that a program will enqueue, in their order, on
// all ranks. It is a collective itself; a difference is an ErrMismatch on every
// rank, and the end of the group.
func (c *Comm) Agree(ctx context.Context, reqs []collective.Request) error {
	lines := make([]string, len(reqs))
	for i, req := range reqs {
		lines[i] = fmt.Sprintf("%s %q", req, req.Label)
	}
	return c.Within(ctx, "agree on a program's collectives", func(in *host.Inside) error {
		return in.Agree("collective", lines)
	})
}

// Enqueue waits for what is queued on s, and carries out req. It cannot be
// captured.
func (c *Comm) Enqueue(s *cuda.Stream, req collective.Request) error {
	on, err := s.Capturing()
	if err != nil {
		return err
	}
	if on {
		return fmt.Errorf("staged: %s %q passes through the host and cannot be captured: run without a graph, or give each rank a GPU of its own and NCCL", req, req.Label)
	}
	if err := s.Sync(c.failed); err != nil {
		return err
	}
	return collective.Do(context.Background(), c.Comm, req)
}

// Capturable says that Enqueue does not serve in a capture.
func (c *Comm) Capturable() bool { return false }

// Await waits for an event behind enqueued collectives: until the group fails,
// which is the error then, or ctx ends, which ends the group.
func (c *Comm) Await(ctx context.Context, e *cuda.Event) error {
	stop := context.AfterFunc(ctx, func() { c.Abort(context.Cause(ctx)) })
	defer stop()
	if err := e.Sync(c.failed); err != nil {
		return err
	}
	return c.Failure()
}
