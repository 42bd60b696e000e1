package cuda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
)

// program implements exec.Program.
type program struct {
	b       *Backend
	name    string
	comm    reducer // nil in a world of one
	profile bool
	tracer  func() func(exec.Event)
	plan    *plan.Plan

	arena           driver.Ptr
	bucket          driver.Ptr
	counters        []driver.Ptr // by step: those of its blocks
	vars            []driver.Ptr
	owned           []driver.Ptr // what Close frees
	in, out         *region
	inputs, outputs []*exec.Tensor // the host's
	launches        []plan.Launch
	steps           []step
	units           []unit          // by launch
	faulty          []int           // the steps that tell of an index out of range
	side, single    *schedule       // over all lanes, and one launch after the other
	events          []*driver.Event // by launch
	joins           []*driver.Event // of lanes, at the beginning and the end of a run

	eager     bool // do not capture
	bodiless  bool // no captured run can be the body of a node
	capturing bool
	warm      bool          // a run is complete
	spread    bool          // and one over all lanes, or no library makes something of its own for each
	run       int           // how many have been put onto the streams, but for timed ones
	replays   int           // of captured runs
	replaying time.Duration // what they took the host, in all

	waits      *waits // what measures waits for collectives, nil until it is asked for
	unmeasured bool   // no run measures, on no rank where they are captured

	slots  []*slot
	first  int // slot of the oldest queued run
	queue  []*flight
	closed bool

	mu     sync.Mutex // guards the six that follow
	stats  exec.Stats
	ops    []exec.OpStats // by step
	wait   time.Duration  // for collectives, in the last run that measured it
	unread bool           // what measures it cannot be read
	raised error          // what this rank has ended its group with
	ended  time.Time      // when the last run ended

	requests []collective.Request // in the order in which they start
	moved    map[int]int64        // bytes, by the number of the collective
}

// step is what is told of a step of the plan.
type step struct {
	op     string // with its parameters
	kind   string // for statistics
	scope  string
	flops  int64
	travel *exec.Travel
}

// work is something that can be put onto a stream.
type work interface {
	enqueue(s *driver.Stream) error
	// launches is the number of kernels and collectives.
	launches() int
	String() string
}

// flight is a run that is queued.
type flight struct {
	slot   *slot
	ctx    context.Context // ends with that of Launch, and when nobody wants its results
	end    context.CancelCauseFunc
	queued chan error // its work is on the streams, or cannot be
	trace  func(exec.Event)
	timed  bool
	began  time.Time
	// measured says that the run measures what is waited for collectives.
	measured bool
	captured *captured // by it, if it is for all ranks to say whether it is kept
}

// Depth is 2: the device computes one run while the next one is queued.
func (p *program) Depth() int { return depth }

// Input is the host buffer of an input, nil if there is none.
func (p *program) Input(name string) *exec.Tensor { return plan.Named(p.plan.Inputs, p.inputs, name) }

// Output is the host buffer of an output, nil if there is none.
func (p *program) Output(name string) *exec.Tensor {
	return plan.Named(p.plan.Outputs, p.outputs, name)
}

// Launch copies the inputs and hands the run to the goroutine that queues runs.
func (p *program) Launch(ctx context.Context) error {
	switch {
	case p.closed:
		return fmt.Errorf("program %q: launched after Close", p.name)
	case p.b.hung():
		return p.named(nil, p.b.hangs())
	case len(p.queue) == depth:
		return fmt.Errorf("program %q: %d runs are queued already: want a Wait first", p.name, depth)
	case ctx.Err() != nil:
		return fmt.Errorf("program %q: %w", p.name, context.Cause(ctx))
	}
	s := p.slots[(p.first+len(p.queue))%depth]
	if s.in != nil {
		p.in.gather(s.in.Bytes(), p.inputs)
	}
	f := &flight{slot: s, queued: make(chan error, 1), began: time.Now()}
	f.ctx, f.end = context.WithCancelCause(ctx)
	if p.tracer != nil {
		f.trace = p.tracer()
	}
	f.timed = p.profile || f.trace != nil
	p.queue = append(p.queue, f)
	p.b.send(func() { f.queued <- p.enqueue(f) }) // Wait says where the GPU hangs
	return nil
}

// Wait waits for the oldest run. If ctx, or the context of its Launch, ends first, it
// stops at the next step or collective.
func (p *program) Wait(ctx context.Context) error {
	switch {
	case len(p.queue) == 0:
		return fmt.Errorf("program %q: Wait without Launch", p.name)
	case p.b.hung():
		return p.named(nil, p.b.hangs())
	}
	f := p.queue[0]
	err := p.complete(ctx, f)
	p.pop()
	if err != nil {
		p.drop(errOver)
		return err
	}
	p.out.scatter(p.outputs, f.slot.out.Bytes())
	return nil
}

// errOver is why a run ends that is queued behind one that failed.
var errOver = errors.New("a run before it failed")

func (p *program) pop() {
	p.queue[0].end(nil)
	p.queue = append(p.queue[:0], p.queue[1:]...)
	p.first = (p.first + 1) % depth
}

// drop ends the runs that are queued: nobody waits for them.
func (p *program) drop(cause error) {
	for len(p.queue) > 0 && !p.b.hung() {
		f := p.queue[0]
		f.end(cause)
		if p.taken(f.queued, cause) == nil {
			p.leave(f) //nolint:errcheck // that the run was cut off is no error of who drops it
		}
		p.pop()
	}
}

// complete waits until a run has ended, and says how.
func (p *program) complete(ctx context.Context, f *flight) error {
	if err := p.queued(ctx, f); err != nil {
		return err
	}
	if err := p.arrive(ctx, f); err != nil {
		return err
	}
	if err := p.fault(f); err != nil {
		return err
	}
	return p.account(f)
}

// queued waits until the work of a run is on the streams.
func (p *program) queued(ctx context.Context, f *flight) error {
	select {
	case err := <-f.queued:
		return err
	case <-ctx.Done():
		f.end(context.Cause(ctx))
	case <-f.ctx.Done():
	case <-p.failed():
		return p.taken(f.queued, p.comm.(mortal).Failure())
	case <-p.b.stuck:
		return p.named(nil, p.b.hangs())
	}
	if p.reducing() {
		p.comm.Abort(context.Cause(f.ctx))
	}
	if err := p.taken(f.queued, context.Cause(f.ctx)); err != nil {
		return err
	}
	return p.cut(f, context.Cause(f.ctx))
}

// mortal is a Comm whose end is told, as that of those over groups of package host.
type mortal interface {
	Failed() <-chan struct{}
	Failure() error
}

// failed is closed when the program's group ends, which frees who is held up by its collectives.
func (p *program) failed() <-chan struct{} {
	if c, ok := p.comm.(mortal); ok && p.reducing() {
		return c.Failed()
	}
	return nil
}

// taken waits, once a run has ended because of cause, for what is done where runs are queued: its
// work is on the streams or cannot be, or its graph is closed. Collectives that hold that up
// end, with their group. Where it is the GPU that does, who queues runs does not return from
// the driver, and nothing can be done with it.
func (p *program) taken(done <-chan error, cause error) error {
	turn := p.b.turns.Load()
	for n := 0; n < 3; n++ { // who fails waits for the streams that long once
		select {
		case err := <-done:
			return err
		case <-p.b.stuck:
			return p.named(nil, fmt.Errorf("%w; %w", cause, p.b.hangs()))
		case <-time.After(p.b.patience):
		}
		if now := p.b.turns.Load(); now != turn { // others have theirs, or kernels are timed
			turn, n = now, -1
		} else if p.reducing() {
			p.comm.Abort(cause)
		}
	}
	p.b.stick()
	return p.named(nil, fmt.Errorf("%w; %s has taken nothing of what is queued for %v since: it hangs, and the process must end", cause, p.b.who(), 3*p.b.patience))
}

// arrive waits until the device has done it.
func (p *program) arrive(ctx context.Context, f *flight) error {
	err := p.await(ctx, f)
	if err == nil {
		return nil
	}
	return p.blamed(p.cut(f, err))
}

// blame remembers what this rank ends its group with.
func (p *program) blame(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raised == nil && !errors.Is(err, collective.ErrAborted) {
		p.raised = err
	}
}

// blamed is why a run fails with err: where the group has ended because a later run, which
// was queued behind this one, failed on this rank, that is why. The end of a group alone
// would be another rank's fault, and the rank would leave it to that one to say it.
func (p *program) blamed(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.raised != nil && errors.Is(err, collective.ErrAborted) {
		return p.raised
	}
	return err
}

// await waits for the run's last event.
func (p *program) await(ctx context.Context, f *flight) error {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })()
	if p.reducing() {
		return p.comm.Await(both, f.slot.done)
	}
	return f.slot.done.Sync(both)
}

// leave waits until what is queued of a run is done. Collectives that hang hold it up: then the
// group ends, or who frees memory would wait for ever.
func (p *program) leave(f *flight) error {
	if p.reducing() {
		ctx, cancel := p.b.patient()
		defer cancel()
		if p.comm.Await(ctx, f.slot.done) == nil {
			return nil
		}
	}
	return p.drain(f)
}

// drain waits until what is queued of a run is done, with nothing left that could
// hold it up.
func (p *program) drain(f *flight) error {
	ctx, cancel := p.b.patient()
	defer cancel()
	return f.slot.done.Sync(ctx)
}

// cut ends a run whose work is queued, because of err. Its group ends, as its
// collectives would wait for ever, and with it the graph, which holds them.
func (p *program) cut(f *flight, err error) error {
	f.end(err)
	if p.reducing() {
		p.comm.Abort(err)
		over := make(chan error, 1)
		go func() {
			if err, ok := ask(p.b, p.forget); ok {
				over <- err
			}
		}()
		late := p.taken(over, err)
		if errors.Is(late, err) { // the GPU hangs
			return late
		}
		err = errors.Join(err, late)
	}
	if late := p.drain(f); late != nil && !sameCause(err, late) {
		err = errors.Join(err, late)
	}
	return p.named(nil, err)
}

// forget closes the graphs of runs. What is in flight goes on.
func (p *program) forget() error {
	var errs []error
	for _, s := range p.slots {
		errs = append(errs, s.plain.close(), s.measured.close(), s.clocked.close())
	}
	return errors.Join(errs...)
}

// named says which program, and, if one is given, which unit failed; nil did not.
func (p *program) named(u *unit, err error) error {
	switch {
	case err == nil:
		return nil
	case u == nil:
		return exec.ErrorAt(p.name, "", "", p.b.full("", err))
	}
	return exec.ErrorAt(p.name, u.scope, u.op, p.b.full("", err))
}

// Stats are sizes and times of the runs that were waited for.
func (p *program) Stats() exec.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if p.profile {
		s.Ops = exec.ByKind(p.ops, func(i int) string { return p.steps[i].kind })
	}
	return s
}

// Dump writes the plan, and then how the device does it.
func (p *program) Dump(w io.Writer) error {
	if err := p.plan.Dump(w); err != nil {
		return err
	}
	return p.side.dump(w, p.launches, p.units)
}

// GraphNodes is the number of operations of the captured run, 0 before there is one.
func (p *program) GraphNodes() int {
	n, _ := ask(p.b, func() int {
		if r := p.replayed(); r != nil {
			return r.NodeCount()
		}
		return 0
	})
	return n
}

// replayed is a captured run, nil before there is one. Those of the slots have the same
// nodes.
func (p *program) replayed() *driver.Exec {
	for _, s := range p.slots {
		if s.plain.replay != nil {
			return s.plain.replay
		}
	}
	return nil
}

// Embodied says whether the captured run is the body of a node.
func (p *program) Embodied() bool {
	yes, _ := ask(p.b, func() bool { return p.replayed() != nil && p.b.c.Body && !p.bodiless })
	return yes
}

// ReplayTime is what a captured run takes the host, in the mean: to have its inputs
// brought, its graph launched and its outputs fetched; 0 before there was one.
func (p *program) ReplayTime() time.Duration {
	d, _ := ask(p.b, func() time.Duration { return p.replaying / time.Duration(max(1, p.replays)) })
	return d
}

// Close ends the runs that are queued, and releases the program's memory.
func (p *program) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	p.drop(errors.New("the program is closed"))
	err, _ := ask(p.b, p.release) // nothing if the GPU hangs, which its backend's Close says
	return err
}

// release does that: nothing of this program is queued, and nothing is captured.
func (p *program) release() error {
	errs := []error{p.forget()}
	for _, s := range p.slots {
		errs = append(errs, s.close())
	}
	for _, e := range append(p.events, p.joins...) {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if p.waits != nil {
		errs = append(errs, p.waits.close())
	}
	for _, m := range p.owned {
		errs = append(errs, p.b.free(m))
	}
	return errors.Join(errs...)
}
