package cpu

import (
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// begin starts a collective on a bucket.
type begin struct {
	p      *program
	req    collective.Request
	number int
}

func newBegin(p *program, op plan.Start, bucket place) kernel {
	return &begin{p, collective.Request{
		Kind: collective.AllReduce, Op: op.Op, Label: op.Label,
		Vec: collective.Vec{Type: bucket.dtype, Len: bucket.dims.Len(), Ptr: bucket.mem},
	}, op.Number}
}

func (s *begin) run() error {
	s.p.pending[s.number] = s.p.comm.Start(s.req)
	return nil
}

// wait waits for it.
type wait struct {
	p      *program
	number int
}

func (w *wait) run() error {
	began := time.Now()
	pending := w.p.pending[w.number]
	w.p.pending[w.number] = nil
	err := pending.Wait(w.p.ctx)
	w.p.stats.CommWait += time.Since(began)
	return err
}

// place is where an array lies, and its physical shape.
type place struct {
	mem   unsafe.Pointer
	dtype collective.DType
	dims  graph.Shape
}
