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

// capture makes the graph of a run that does as each does.
func (p *program) capture(f *flight, r *recording, each func() error) error {
	err := p.record(f, r, each)
	switch {
	case err == nil || f.ctx.Err() != nil:
		return err
	case f.measured: // one that does not measure may do
		f.measured = false
		p.doNotMeasure(err)
		return nil
	case p.b.c.Graphs == GraphsOn:
		return err
	}
	p.eager = true
	p.b.c.Say(fmt.Sprintf("program %q could not be captured (%v): its steps are launched one by one, which takes longer", p.name, err))
	return nil
}

// record captures a run: as the body of a node, if that is wanted and can be.
func (p *program) record(f *flight, r *recording, each func() error) error {
	if p.embodies(f, r) {
		err := p.b.dev.Do(func() error { return p.recordBody(r, each) })
		if err == nil || f.ctx.Err() != nil || sticky(err) {
			return err
		}
		p.disembody(err)
	}
	return p.b.dev.Do(func() error {
		main := p.b.lanes[0]
		return p.recordBetween(r, main.BeginCapture, each, main.EndCapture)
	})
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
func (p *program) recordBody(r *recording, each func() error) error {
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
	if err := p.recordBetween(r, begin, each, end); err != nil {
		return err
	}
	if err := r.replay.Upload(main); err != nil {
		return errors.Join(p.named(nil, err), r.close())
	}
	return nil
}

// recordBetween records what each queues after begin, and makes what end gives ready to be
// launched.
func (p *program) recordBetween(r *recording, begin, each func() error, end func() (*driver.Graph, error)) error {
	if err := begin(); err != nil {
		return p.named(nil, err)
	}
	p.capturing = true
	err := each()
	p.capturing = false
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
