package cpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/plan"
)

// program implements exec.Program.
type program struct {
	b       *Backend
	name    string
	comm    collective.Comm
	profile bool
	tracer  func() func(exec.Event)
	plan    *plan.Plan

	arena, bucket         []byte
	inputs, outputs, vars []*exec.Tensor
	engine                []engine.Kernel
	steps                 []step
	pending               []collective.Pending // by number, zero if not under way

	ctx     *stopper         // of the run under way
	trace   func(exec.Event) // of the run under way, nil if nobody asks
	run     func()           // do, bound once
	running bool
	closed  bool
	done    chan error

	mu    sync.Mutex // guards stats
	stats exec.Stats
	ops   []exec.OpStats // by step
}

func (p *program) summarise() {
	p.run = p.do
	p.ctx = newStopper()
	p.ops = make([]exec.OpStats, len(p.steps))
	p.stats.Nodes, p.stats.Steps = p.plan.LiveNodes, len(p.steps)
	p.stats.PeakBytes = int64(p.plan.ArenaBytes + p.plan.BucketBytes)
	for _, v := range p.plan.Vars {
		p.stats.VarBytes += int64(v.Type.Bytes())
	}
}

// Depth is 1: the processor computes, and nobody waits for a device.
func (p *program) Depth() int { return 1 }

// Input is the host buffer of an input, nil if there is none.
func (p *program) Input(name string) *exec.Tensor { return plan.Named(p.plan.Inputs, p.inputs, name) }

// Output is the host buffer of an output, nil if there is none.
func (p *program) Output(name string) *exec.Tensor {
	return plan.Named(p.plan.Outputs, p.outputs, name)
}

// Launch hands one run to the backend's thread.
func (p *program) Launch(ctx context.Context) error {
	switch {
	case p.closed:
		return fmt.Errorf("program %q: launched after Close", p.name)
	case p.running:
		return fmt.Errorf("program %q: launched again before Wait", p.name)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("program %q: %w", p.name, context.Cause(ctx))
	}
	if p.ctx.Err() != nil {
		p.ctx = newStopper()
	}
	p.ctx.parent = ctx
	p.running = true
	p.b.calls <- p.run
	return nil
}

// Wait waits for the run. If ctx, or the context of Launch, ends first, the
// run stops at the next step or collective.
func (p *program) Wait(ctx context.Context) error {
	if !p.running {
		return fmt.Errorf("program %q: Wait without Launch", p.name)
	}
	p.running = false
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		p.ctx.stop(context.Cause(ctx))
	case <-p.ctx.parent.Done():
		p.ctx.stop(context.Cause(p.ctx.parent))
	}
	return <-p.done
}

// do runs the steps, on the backend's thread.
func (p *program) do() {
	began := time.Now()
	err := p.all()
	p.mu.Lock()
	if err == nil {
		p.stats.Runs++
		p.stats.RunTime += time.Since(began)
	}
	p.mu.Unlock()
	p.done <- err
}

func (p *program) all() error {
	p.trace = nil
	if p.tracer != nil {
		p.trace = p.tracer()
	}
	timed := p.profile || p.trace != nil
	for i := range p.steps {
		s := &p.steps[i]
		if p.ctx.Err() != nil {
			return p.fail(s, p.ctx.cause())
		}
		var began time.Time
		if timed {
			began = time.Now()
		}
		if err := s.Run(); err != nil {
			return p.fail(s, err)
		}
		if timed {
			p.count(i, began, time.Since(began))
		}
	}
	return nil
}

// count notes the time of step i.
func (p *program) count(i int, began time.Time, took time.Duration) {
	s := &p.steps[i]
	if p.profile {
		p.ops[i].Add(took, s.flops)
	}
	if p.trace != nil {
		p.trace(exec.Event{Kind: s.kind, Name: s.op, Scope: s.scope, Start: began, Time: took, Flops: s.flops, Bytes: p.plan.Traffic(i), Travel: s.travel})
	}
}

// fail names the step of an error. Where there are collectives it ends the
// group: the other ranks would wait for this one's part.
func (p *program) fail(s *step, err error) error {
	err = exec.ErrorAt(p.name, s.scope, s.op, err)
	if len(p.pending) > 0 {
		p.comm.Abort(err)
		clear(p.pending)
	}
	return err
}

// Stats are sizes and times so far, between runs.
func (p *program) Stats() exec.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if p.profile {
		s.Ops = exec.ByKind(p.ops, func(i int) string { return p.steps[i].kind })
	}
	return s
}

// Dump writes the plan.
func (p *program) Dump(w io.Writer) error { return p.plan.Dump(w) }

// Close waits for a run under way, and releases the program's memory.
func (p *program) Close() error {
	var errs []error
	if p.running {
		p.running = false
		p.ctx.stop(errors.New("the program is closed"))
		<-p.done //nolint:errcheck // that the run was cut off is no error of Close
	}
	if len(p.engine) > 0 {
		p.b.do(func() {
			for _, k := range p.engine {
				errs = append(errs, k.Close())
			}
		})
	}
	p.closed = true
	p.engine, p.steps, p.ops, p.arena, p.bucket = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
