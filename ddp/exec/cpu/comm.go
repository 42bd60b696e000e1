package cpu

import (
	"context"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/plan"
)

// begin starts a collective on a bucket.
type begin struct {
	p      *program
	req    collective.Request
	travel *exec.Travel
}

func newBegin(p *program, op plan.Start, travel *exec.Travel, bucket array.Place) kernel {
	return &begin{p, collective.Request{
		Kind: op.Kind, Op: op.Op, Label: op.Label,
		Vec: collective.Vec{Type: bucket.DType, Len: bucket.Len(), Ptr: bucket.Mem},
	}, travel}
}

func (s *begin) Run() error {
	if s.p.trace != nil {
		s.p.pending[s.travel.Number] = watch(s.p, s.req, s.travel)
		return nil
	}
	s.p.pending[s.travel.Number] = s.p.comm.Start(s.req)
	return nil
}

// watched is a collective of a traced run, which notes when it is complete.
type watched struct {
	trace       func(exec.Event)
	req         collective.Request
	travel      *exec.Travel
	began, done time.Time
	err         error
	complete    chan struct{}
}

// watch starts a collective and waits for it on a goroutine of its own.
func watch(p *program, req collective.Request, travel *exec.Travel) collective.Pending {
	w := &watched{trace: p.trace, req: req, travel: travel, began: time.Now(), complete: make(chan struct{})}
	ctx, pending := p.ctx, p.comm.Start(req)
	go func() {
		defer close(w.complete)
		w.err = pending.Wait(ctx)
		w.done = time.Now()
	}()
	return collective.NewPending(w, collective.Ticket{})
}

// WaitFor waits for it and tells the trace. The context is that of the run.
func (w *watched) WaitFor(context.Context, collective.Ticket) error {
	<-w.complete
	if w.err == nil {
		w.trace(exec.Event{Kind: exec.Collective, Name: w.req.Label, Start: w.began, Time: w.done.Sub(w.began),
			Bytes: int64(w.req.Vec.Len) * int64(w.req.Vec.Type.Size()), Travel: w.travel})
	}
	return w.err
}

// wait waits for it.
type wait struct {
	p      *program
	number int
}

func (w *wait) Run() error {
	began := time.Now()
	pending := w.p.pending[w.number]
	w.p.pending[w.number] = collective.Pending{}
	err := pending.Wait(w.p.ctx)
	w.p.stats.CommWait += time.Since(began)
	return err
}
