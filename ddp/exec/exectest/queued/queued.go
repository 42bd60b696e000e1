// Package queued makes of a backend one whose programs queue runs, as those of
// a device do (see exec.Program.Depth): Launch copies the inputs and returns, a
// goroutine of each program runs what is queued, in order and after a while, and
// Wait copies the outputs of the oldest run. It is for tests of who uses programs.
//
// Concurrency: as package exec says.
package queued

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Backend is another backend with a queue.
type Backend struct {
	exec.Backend
	Runs int // that may be queued, at least 1
	// Reduced is what Connect gives; nil leaves it to the other backend. While runs
	// are queued nobody else may start collectives on what programs reduce over, so
	// who does needs another Comm here.
	Reduced collective.Comm
}

// Connect is the Comm that programs reduce over.
func (b Backend) Connect(ctx context.Context, host collective.Comm) (collective.Comm, error) {
	if b.Reduced != nil {
		return b.Reduced, nil
	}
	return b.Backend.Connect(ctx, host)
}

// Compile makes a program of the other backend, with a queue.
func (b Backend) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	inner, err := b.Backend.Compile(g, o)
	if err != nil {
		return nil, err
	}
	p := &program{Program: inner, stats: inner.Stats(), work: make(chan *run, b.Runs), ended: make(chan struct{})}
	p.in, p.out = like(g, inner)
	for range b.Runs {
		r := &run{done: make(chan error, 1)}
		r.in, r.out = like(g, inner)
		p.slots = append(p.slots, r)
	}
	go p.serve()
	return p, nil
}

// tensors are by name.
type tensors map[string]*exec.Tensor

// like are tensors as the inputs and outputs of a program.
func like(g *graph.Graph, p exec.Program) (in, out tensors) {
	in, out = tensors{}, tensors{}
	for _, n := range g.Nodes() {
		if leaf, ok := n.Op.(graph.Leaf); ok && leaf.Kind == graph.Input && p.Input(leaf.Name) != nil {
			in[leaf.Name] = exec.NewTensor(leaf.Type)
		}
	}
	for _, o := range g.Outputs() {
		out[o.Name] = exec.NewTensor(g.Type(o.ID))
	}
	return in, out
}

// fill copies the tensors that from gives by name.
func (t tensors) fill(from func(name string) *exec.Tensor) {
	for name, to := range t {
		copy(to.Bytes(), from(name).Bytes())
	}
}

func (t tensors) get(name string) *exec.Tensor { return t[name] }

// run is a place in the queue.
type run struct {
	in, out tensors
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stats   exec.Stats // after it
	done    chan error // how it ended
}

// program is another program with a queue: the slots from first on, in a circle.
type program struct {
	exec.Program
	in, out tensors
	slots   []*run
	first   int
	queued  int
	closed  bool
	stats   exec.Stats // of the runs that were waited for
	work    chan *run
	ended   chan struct{}
}

var errOver = errors.New("a run before it failed")

// serve runs what is queued. The goroutines that launch and wait get some turns
// first, so that they go ahead.
func (p *program) serve() {
	defer close(p.ended)
	for r := range p.work {
		for range 100 {
			runtime.Gosched()
		}
		for name, t := range r.in {
			copy(p.Program.Input(name).Bytes(), t.Bytes())
		}
		err := exec.Run(r.ctx, p.Program)
		if err == nil {
			r.out.fill(p.Program.Output)
			r.stats = p.Program.Stats()
		}
		r.done <- err
	}
}

func (p *program) Depth() int                      { return len(p.slots) }
func (p *program) Input(name string) *exec.Tensor  { return p.in[name] }
func (p *program) Output(name string) *exec.Tensor { return p.out[name] }
func (p *program) Stats() exec.Stats               { return p.stats }

// Launch puts a run into the queue.
func (p *program) Launch(ctx context.Context) error {
	switch {
	case p.closed:
		return errors.New("launched after Close")
	case p.queued == len(p.slots):
		return fmt.Errorf("%d runs are queued already: want a Wait first", p.queued)
	}
	r := p.slots[(p.first+p.queued)%len(p.slots)]
	r.in.fill(p.in.get)
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	p.queued++
	p.work <- r
	return nil
}

// Wait waits for the oldest run. If it fails, the others end too.
func (p *program) Wait(ctx context.Context) error {
	if p.queued == 0 {
		return errors.New("Wait without Launch")
	}
	r := p.pop()
	stop := context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	err := <-r.done
	stop()
	r.cancel(nil)
	if err != nil {
		p.drop(errOver)
		return err
	}
	p.out.fill(r.out.get)
	p.stats = r.stats
	return nil
}

func (p *program) pop() *run {
	r := p.slots[p.first]
	p.first, p.queued = (p.first+1)%len(p.slots), p.queued-1
	return r
}

// drop ends the runs that are queued.
func (p *program) drop(cause error) {
	for p.queued > 0 {
		r := p.pop()
		r.cancel(cause)
		<-r.done //nolint:errcheck // that the run was cut off is no error of who drops it
	}
}

// Close ends the runs that are queued, and the other program.
func (p *program) Close() error {
	p.closed = true
	p.drop(errors.New("the program is closed"))
	close(p.work)
	<-p.ended
	return p.Program.Close()
}
