//go:build cgo

package cudnn

// #include "shim.h"
import "C"

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
)

// plan is an execution plan, with the descriptors that it was made of.
type plan struct {
	choice
	b    *builder
	desc desc
	op   linalg.ConvOp
	work int64
}

// Restore makes the plan of a choice again.
func (l *Library) Restore(p linalg.Problem, saved json.RawMessage) (linalg.Candidate, error) {
	conv, ok := p.(linalg.Conv)
	if !ok {
		return nil, fmt.Errorf("cuDNN has no plan for %v", p)
	}
	if err := conv.Check(); err != nil {
		return nil, err
	}
	var c choice
	if err := json.Unmarshal(saved, &c); err != nil {
		return nil, fmt.Errorf("the choice of an engine for %v: %w", p, err)
	}
	var made *plan
	err := l.dev.Attach(func() (err error) { made, err = l.plan(conv, c); return err })
	if err != nil {
		return nil, err
	}
	return made, nil
}

// plan builds the plan of an engine with its knobs.
func (l *Library) plan(p linalg.Conv, c choice) (*plan, error) {
	b := newBuilder(l)
	g := b.operation(p)
	e := b.create(C.EB_CUDNN_BACKEND_ENGINE_DESCRIPTOR)
	set(b, e, C.EB_CUDNN_ATTR_ENGINE_OPERATION_GRAPH, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, g)
	set(b, e, C.EB_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, C.EB_CUDNN_TYPE_INT64, c.Engine)
	b.finalize(e)
	cfg := b.create(C.EB_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
	set(b, cfg, C.EB_CUDNN_ATTR_ENGINECFG_ENGINE, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, e)
	if len(c.Knobs) > 0 {
		set(b, cfg, C.EB_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, b.knobs(c)...)
	}
	b.finalize(cfg)
	d := b.create(C.EB_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
	set(b, d, C.EB_CUDNN_ATTR_EXECUTION_PLAN_HANDLE, C.EB_CUDNN_TYPE_HANDLE, l.base)
	set(b, d, C.EB_CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, cfg)
	b.finalize(d)
	work := []int64{0}
	get(b, d, C.EB_CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, C.EB_CUDNN_TYPE_INT64, work)
	if b.err != nil {
		return nil, cmp.Or(b.err, b.close())
	}
	return &plan{choice: c, b: b, desc: d, op: p.Op, work: work[0]}, nil
}

func (b *builder) knobs(c choice) []desc {
	list := b.createAll(C.EB_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, len(c.Knobs))
	for i, k := range c.Knobs {
		set(b, list[i], C.EB_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, C.EB_CUDNN_TYPE_KNOB_TYPE, int32(k[0]))
		set(b, list[i], C.EB_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, C.EB_CUDNN_TYPE_INT64, k[1])
		b.finalize(list[i])
	}
	return list
}

func (c choice) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "engine %d", c.Engine)
	for i, k := range c.Knobs {
		if i == 0 {
			s.WriteString(", knobs")
		}
		fmt.Fprintf(&s, " %d=%d", k[0], k[1])
	}
	return s.String()
}

func (p *plan) Workspace() int64 { return linalg.Room(p.work) }

// Enqueue puts a run onto the stream.
func (p *plan) Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	return p.b.l.dev.Attach(func() error { return p.run(s, o, work) })
}

// run is Enqueue with the context current.
func (p *plan) run(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	l := p.b.l
	h, err := l.on(s)
	if err != nil {
		return err
	}
	ids := [...]C.int64_t{idX, idW, idY}
	var places [3]C.uint64_t
	switch p.op {
	case linalg.Forward:
		places = [...]C.uint64_t{C.uint64_t(o.A), C.uint64_t(o.B), C.uint64_t(o.Dst)}
	case linalg.GradX:
		places = [...]C.uint64_t{C.uint64_t(o.Dst), C.uint64_t(o.A), C.uint64_t(o.B)}
	default:
		places = [...]C.uint64_t{C.uint64_t(o.A), C.uint64_t(o.Dst), C.uint64_t(o.B)}
	}
	var why C.eb_why
	status := C.eb_cudnn_run(l.api, C.uintptr_t(h), C.uintptr_t(p.desc), 3, &ids[0], &places[0], C.uint64_t(linalg.Start(work)), &why)
	return l.check(status, &why, "a run of "+p.String())
}

func (p *plan) Saved() json.RawMessage {
	text, err := json.Marshal(p.choice)
	if err != nil {
		panic(err) // numbers
	}
	return text
}

func (p *plan) Close() error { return p.b.l.dev.Attach(p.release) }

// release destroys the plan, with the context current.
func (p *plan) release() error { return p.b.close() }
