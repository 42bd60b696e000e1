package host

import (
	"context"
	"fmt"
	"time"

	"ebtrain/collective"
)

// Device is memory that is not the host's, one part for each rank, and what
// moves data between the parts. Its methods are called by one goroutine at a
// time, when all ranks have agreed on what they are asked.
type Device interface {
	// Alloc is what Comm.Alloc promises, for this rank.
	Alloc(in *Inside, n int) (collective.Vec, error)
	// Run carries out req, which is well formed and no barrier, and returns when it
	// is complete on this rank or cannot be. It must return soon after the group
	// has failed.
	Run(in *Inside, req collective.Request) error
}

// Over makes a second group of the same ranks, with connections of its own, whose
// vectors lie in d's memory. All ranks call it between the same two collectives
// of c. A rank that has not come to a collective of the new group within limit
// ends it, and is named; 0 is no limit. The failure of either group is that of
// both, and of c also that of Over.
func (c *Comm) Over(ctx context.Context, d Device, limit time.Duration) (*Comm, error) {
	cfg := c.cfg
	cfg.Job = fmt.Sprintf("%s, device %d", cfg.Job, c.overs.Add(1))
	cfg.Progress, cfg.Ended = nil, nil
	cfg.Exchange = func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
		return collective.GatherBytes(ctx, c, name, mine)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("not connected within %v", cfg.Timeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case <-c.Failed(): // who has failed never connects
			fail(c.Failure())
		case <-ctx.Done():
		}
	}()
	p, err := joined(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o := unbegun(cfg, p)
	m := newDeviceMover(o, d, limit)
	o.begin(m.meeting, m, false)
	go o.share(c)
	return o, nil
}

// share makes the failure of one group that of the other, until o is closed.
func (o *Comm) share(c *Comm) {
	select {
	case <-o.Failed():
		c.Abort(o.Failure())
	case <-c.Failed():
		o.Abort(c.Failure())
	case <-o.released:
	}
}

// Within is a collective that asks of every rank's f what it likes: f is called
// in the order of Start, when all ranks have come to it. Its error ends the group. Only a
// group that Over has made has it.
func (c *Comm) Within(ctx context.Context, label string, f func(in *Inside) error) error {
	req := collective.Request{Kind: collective.Barrier, Label: label}
	if _, ok := c.mover.(*deviceMover); !ok {
		return fmt.Errorf("%w: %s inside a group over no device", collective.ErrInvalid, label)
	}
	return c.runner.WaitFor(ctx, ticket(c.runner.put(item{req: req, within: f}), req))
}

// CallRoll is a barrier for a rank whose device is late with what past collectives have put
// there, called what: it says who has not come. If another rank has gone on to something
// else, that is no mismatch but the device's or a link's fault. Only a group that Over has
// made has it.
func (c *Comm) CallRoll(ctx context.Context, what string) error {
	req := collective.Request{Kind: collective.Barrier, Label: what}
	if _, ok := c.mover.(*deviceMover); !ok {
		return fmt.Errorf("%w: %s in a group over no device", collective.ErrInvalid, what)
	}
	return c.runner.WaitFor(ctx, ticket(c.runner.put(item{req: req, roll: true}), req))
}

// within is the collective of Within.
func (m *deviceMover) within(ctx context.Context, it item) error {
	m.begin(it.seq, it.req)
	m.mine.header = markedHeader(it.seq, markWithin)
	if err := m.agree(ctx, m.mine, it.req); err != nil {
		return err
	}
	return it.within(&m.in)
}

// roll is the collective of CallRoll.
func (m *deviceMover) roll(ctx context.Context, it item) error {
	m.begin(it.seq, it.req)
	m.mine.header = markedHeader(it.seq, markRoll)
	return m.agree(ctx, m.mine, it.req)
}

// deviceMover leaves the data to a Device: it compares what the ranks start,
// and sees to it that all come.
type deviceMover struct {
	*meeting
	dev  Device
	in   Inside
	mine localHeader // of the collective under way
}

func newDeviceMover(c *Comm, d Device, limit time.Duration) *deviceMover {
	met := newMeeting(c.peers, c.alarm)
	return &deviceMover{meeting: met, dev: d, in: Inside{Comm: c, base: newMover(met), call: newRollCall(c, limit)}}
}

func (m *deviceMover) quick(collective.Request) bool { return false }

func (m *deviceMover) begin(seq uint64, req collective.Request) {
	m.in.seq = seq
	m.mine = localHeader{header: headerOf(seq, req), seg: -1}
}

func (m *deviceMover) finish(ctx context.Context, req collective.Request) error {
	if err := m.agree(ctx, m.mine, req); err != nil || req.Kind == collective.Barrier {
		return err
	}
	return m.dev.Run(&m.in, req)
}

func (m *deviceMover) alloc(ctx context.Context, seq uint64, n int) (collective.Vec, error) {
	m.in.seq = seq
	h := header{kind: collective.Allocation, len: uint64(n), seq: seq}
	if err := m.agree(ctx, localHeader{header: h, seg: -1}, collective.Request{Kind: collective.Allocation}); err != nil {
		return collective.Vec{}, err
	}
	return m.dev.Alloc(&m.in, n)
}

// agree compares h, which is req's, on all ranks, within the limit.
func (m *deviceMover) agree(ctx context.Context, h localHeader, req collective.Request) error {
	if m.topo.size == 1 {
		return nil
	}
	m.in.call.expect(req, true)
	defer m.in.call.over()
	return m.consent(ctx, h, req.Label)
}
