package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"ebtrain/collective"
)

// Comm is one rank's end of a group. It implements collective.Comm.
//
//	Start, Do, Alloc, Wait ─▶ runner ─▶ executor ─▶ mover ─▶ peers
//	                          queue     recorder    data     arena, star, mesh
//	Abort ───────────────────────────▶ alarm ────────────────▲
type Comm struct {
	cfg      Config
	peers    *peers
	alarm    *alarm
	mover    mover
	meeting  *meeting // of the mover
	runner   *runner
	recorder *collective.Recorder
	released chan struct{} // closed when Close is done
	overs    atomic.Uint32 // groups that Over has made
}

var _ collective.Comm = (*Comm)(nil)

func newComm(cfg Config, p *peers) *Comm {
	c := unbegun(cfg, p)
	m := newMeeting(p, c.alarm)
	c.begin(m, newMover(m), p.mesh == nil || p.mesh.carrier.heeds())
	return c
}

// unbegun is a Comm that cannot yet be used.
func unbegun(cfg Config, p *peers) *Comm {
	return &Comm{cfg: cfg, peers: p, alarm: &alarm{peers: p, raised: make(chan struct{})},
		recorder: collective.NewRecorder(cfg.Recorded), released: make(chan struct{})}
}

// begin is the first of c's life, in which m moves the data of those who meet. Where
// it is helped, callers that wait run collectives, too.
func (c *Comm) begin(met *meeting, m mover, helped bool) {
	c.meeting, c.mover = met, m
	c.runner = newRunner(&executor{mover: m, alarm: c.alarm, size: c.cfg.Size, log: c.peers.log, recorder: c.recorder,
		progress: c.cfg.Progress, ended: c.cfg.Ended}, helped, c.peers.spins)
	c.peers.watch(c.alarm, c.runner.ended)
	go c.runner.run()
}

// Rank is this process's number.
func (c *Comm) Rank() int { return c.peers.topo.rank }

// Size is the number of ranks in the group.
func (c *Comm) Size() int { return c.peers.topo.size }

// Recent is what the flight recorder holds, oldest first. It may be called at
// any time, also after Close.
func (c *Comm) Recent() []collective.Entry { return c.recorder.Recent() }

// Start queues req. See collective.Comm.
func (c *Comm) Start(req collective.Request) collective.Pending {
	return collective.NewPending(c.runner, ticket(c.runner.start(req), req))
}

// Do is Start and Wait, without waking the runner in between.
func (c *Comm) Do(ctx context.Context, req collective.Request) error {
	return c.runner.WaitFor(ctx, ticket(c.runner.put(item{req: req}), req))
}

func ticket(seq uint64, req collective.Request) collective.Ticket {
	return collective.Ticket{Seq: seq, Kind: req.Kind, Label: req.Label}
}

// Alloc returns shared memory, which Vec.Bytes shows. See collective.Comm. It takes its place in the
// order of collectives: all ranks call it between the same two.
func (c *Comm) Alloc(n int) (collective.Vec, error) {
	if n < 0 {
		return collective.Vec{}, fmt.Errorf("%w: alloc of %d bytes", collective.ErrInvalid, n)
	}
	it := item{alloc: &allocation{n: n}, req: collective.Request{Kind: collective.Allocation, Label: fmt.Sprintf("%d bytes", n)}}
	if err := c.runner.WaitFor(context.Background(), ticket(c.runner.put(it), it.req)); err != nil {
		return collective.Vec{}, err
	}
	return it.alloc.mem, nil
}

// Abort ends the group. See collective.Comm.
func (c *Comm) Abort(cause error) { c.alarm.abort(cause) }

// Close releases the group. See collective.Comm. Memory from Alloc is gone
// afterwards: touching it is a fault.
func (c *Comm) Close() error {
	pending, first := c.runner.close()
	if !first {
		<-c.released
		return nil
	}
	defer close(c.released)
	if pending > 0 {
		c.alarm.abort(fmt.Errorf("%w by rank %d with %d collectives pending", collective.ErrClosed, c.Rank(), pending))
	}
	c.alarm.silence()
	c.runner.signal()
	<-c.runner.ended
	c.peers.farewell()
	return errors.Join(c.peers.close(), c.mover.unmap())
}
