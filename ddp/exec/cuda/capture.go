package cuda

import (
	"errors"
	"fmt"

	driver "ebtrain/collective/cuda"
)

// recording is a run that was captured, if it was.
type recording struct {
	graph  *driver.Graph
	replay *driver.Exec
}

// close closes the graph. What is in flight goes on.
func (r *recording) close() error {
	var errs []error
	if r.replay != nil {
		errs = append(errs, r.replay.Close())
	}
	if r.graph != nil {
		errs = append(errs, r.graph.Close())
	}
	*r = recording{}
	return errors.Join(errs...)
}

// capture makes the graph of a run that does as each does. A program that reduces is
// captured on all ranks or on none, as NCCL's collectives are: which it is, settle finds
// out behind the run, and that is launched step by step.
func (p *program) capture(f *flight, r *recording, each func() error) error {
	failed := p.attempt(f, r, each)
	if errors.Is(failed, errElsewhere) {
		failed = nil // it is for that rank to say, and settle hears of it
	}
	switch {
	case failed != nil && (p.ends(f, failed) || p.b.c.Graphs == GraphsOn && !f.measured):
		return failed
	case p.reducing():
		f.captured = &captured{r, f.measured, failed}
		f.measured = f.measured && failed == nil
	case failed != nil:
		p.eager = true
		p.sayEager(failed)
	}
	return nil
}

// captured is what a run has captured, or why it could not.
type captured struct {
	r        *recording
	measured bool
	failed   error
}

// settle keeps what a run has captured if all ranks have captured it. Else all do without,
// and the first that failed says why.
func (p *program) settle(f *flight) error {
	c := f.captured
	if c == nil {
		return nil
	}
	all, first, err := p.council(f.ctx, fmt.Sprintf("whether program %q is captured", p.name), c.failed)
	switch {
	case err != nil:
		return p.named(nil, err)
	case all:
		return nil
	case c.measured: // one that does not measure may do
		p.unmeasured = true
		if first {
			p.sayUnmeasured(c.failed)
		}
		return c.r.close()
	}
	p.eager = true
	if first {
		p.sayEager(c.failed)
	}
	return p.forget()
}

// sayEager says why runs are not captured.
func (p *program) sayEager(err error) {
	p.b.c.Say(fmt.Sprintf("program %q could not be captured (%v): its steps are launched one by one, which takes longer", p.name, err))
}

// ends says whether what went wrong in a capture ends the run, and with it the group: when
// nobody wants the run, when the device is lost, when NCCL refused a collective, of
// which it may still put a part onto the stream that is not captured any more, and when other
// ranks may wait in NCCL for the rest of the capture.
func (p *program) ends(f *flight, err error) bool {
	_, refused := errors.AsType[*refusedError](err)
	return f.ctx.Err() != nil || sticky(err) || refused
}

// attempt captures a run, and before it makes what it measures with, if it does.
func (p *program) attempt(f *flight, r *recording, each func() error) error {
	if f.measured {
		if err := p.makeWaits(); err != nil {
			return p.allBegin(f, err)
		}
	}
	return p.record(f, r, each)
}

// meets says whether ranks may wait for each other in NCCL while they capture.
func (p *program) meets() bool {
	c, ok := p.comm.(interface{ Meets() bool })
	return ok && p.reducing() && c.Meets()
}

// errElsewhere is why a rank does not go on with its capture.
var errElsewhere = errors.New("another rank cannot begin its capture")

// allBegin tells the others, where they may wait for this rank in NCCL while they capture, whether
// it has begun to. It is why this rank does not go on with its capture, if it does not.
func (p *program) allBegin(f *flight, failed error) error {
	if !p.meets() {
		return failed
	}
	all, _, err := p.council(f.ctx, fmt.Sprintf("whether all ranks begin to capture program %q", p.name), failed)
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return &refusedError{p.named(nil, err)}
	case !all:
		return errElsewhere
	}
	return nil
}

// record captures a run: as the body of a node, if that is wanted and can be.
func (p *program) record(f *flight, r *recording, each func() error) error {
	if p.embodies(f, r) {
		err := p.b.dev.Do(func() error { return p.recordBody(f, r, each) })
		if err == nil || f.ctx.Err() != nil || sticky(err) {
			return err
		}
		p.disembody(err)
	}
	asked := false
	err := p.b.dev.Do(func() error {
		asked = true
		main := p.b.lanes[0]
		return p.recordBetween(f, r, main.BeginCapture, each, main.EndCapture)
	})
	if !asked {
		return p.allBegin(f, err)
	}
	return err
}

// sticky says whether the device is lost.
func sticky(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	return ok && e.Sticky()
}

// embodies says whether a recording is to be the body of a node. Those of runs that are
// timed hold records of events, those of collectives what NCCL pleases, which may be
// functions of the host's: no body may.
func (p *program) embodies(f *flight, r *recording) bool {
	if !p.b.c.Body || p.bodiless || r != &f.slot.plain {
		return false
	}
	p.bodiless = len(p.moved) > 0
	return !p.bodiless
}

// disembody says why runs are no bodies.
func (p *program) disembody(err error) {
	p.bodiless = true
	p.b.c.Say(fmt.Sprintf("program %q: its captured run cannot be the body of a node (%v): all its nodes are launched, which takes the host longer", p.name, err))
}

// recordBody captures a run as the body of a node. It brings it to the device, too, so that
// a driver that refuses it does so here.
func (p *program) recordBody(f *flight, r *recording, each func() error) error {
	main := p.b.lanes[0]
	g, err := p.b.dev.NewBody()
	if err != nil {
		return err
	}
	begin := func() error {
		if err := main.BeginCaptureTo(g); err != nil {
			return errors.Join(err, g.Close())
		}
		return nil
	}
	end := func() (*driver.Graph, error) { return g, main.EndCaptureTo(g) }
	if err := p.recordBetween(f, r, begin, each, end); err != nil {
		return err
	}
	if err := r.replay.Upload(main); err != nil {
		return errors.Join(p.named(nil, err), r.close())
	}
	return nil
}

// recordBetween records what each queues after begin, and makes what end gives ready to be
// launched.
func (p *program) recordBetween(f *flight, r *recording, begin, each func() error, end func() (*driver.Graph, error)) error {
	began := p.named(nil, begin())
	err := p.allBegin(f, began)
	if began != nil {
		return err
	}
	if err == nil {
		err = p.recorded(f, each)
	}
	g, ended := end()
	if err == nil {
		err = p.named(nil, ended)
	}
	if err != nil {
		if g != nil {
			err = errors.Join(err, g.Close())
		}
		return err
	}
	r.graph = g
	if r.replay, err = g.Instantiate(); err != nil {
		return errors.Join(p.named(nil, err), r.close())
	}
	return nil
}

// recorded is each, which is captured.
func (p *program) recorded(f *flight, each func() error) error {
	p.capturing = true
	err := each()
	p.capturing = false
	if err != nil && p.meets() && !p.ends(f, err) {
		return &refusedError{fmt.Errorf("%w; that ends all ranks, as with NVLS (NCCL_NVLS_ENABLE) they wait for each other while they capture: leave it off, or capture nothing", err)}
	}
	return err
}
