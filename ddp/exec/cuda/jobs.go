package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
)

// jobs says how each step is done, before the plan's memory is laid out, and how much
// scratch memory it needs: what a library chose, nil for a kernel of package kernel.
func (p *program) jobs(o exec.Options) ([]choose.Kernel, error) {
	var list []choose.Kernel
	err := p.b.inTurn(func() (err error) { list, err = p.b.libs.choose(p, o); return err })
	if err != nil {
		return nil, err
	}
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		if list[i] != nil {
			s.Scratch = int(list[i].Workspace())
			continue
		}
		switch s.Op.(type) {
		case plan.Start, plan.Wait:
		default:
			s.Scratch = kernel.Scratch(p.plan, i)
		}
	}
	return list, nil
}

// at says which step: scope and op.
func at(s *plan.Step) string {
	if s.Scope == "" {
		return s.Op.String()
	}
	return s.Scope + ": " + s.Op.String()
}

// module is a kernel that is loaded once ready is closed, or could not be.
type module struct {
	m     *driver.Module
	f     driver.Function
	err   error
	ready chan struct{}
}

func (m *module) close() error { return m.m.Close() }

// load compiles and loads kernels, by their entries, that are not loaded yet, and waits for
// those that others load. Who queues runs does not wait meanwhile.
func (b *Backend) load(sources map[string]string) (err error) {
	all := b.wanted(sources)
	for _, m := range all {
		<-m.ready
		err = cmp.Or(err, m.err)
	}
	return err
}

// wanted are the modules of kernels; those that nobody loads are from now on.
func (b *Backend) wanted(sources map[string]string) (all []*module) {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := make(chan struct{}, max(1, min(runtime.NumCPU(), 16)))
	for entry, source := range sources {
		m := b.modules[entry]
		if m == nil {
			m = &module{ready: make(chan struct{})}
			b.modules[entry] = m
			go func() {
				free <- struct{}{}
				defer func() { <-free }()
				b.compile(m, entry, source)
			}()
		}
		all = append(all, m)
	}
	return all
}

// compile compiles and loads a kernel. One that could not be is forgotten.
func (b *Backend) compile(m *module, entry, source string) {
	defer close(m.ready)
	if m.err = m.make(b.dev, entry, source); m.err != nil {
		m.err = fmt.Errorf("kernel %s: %w", entry, m.err)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.modules, entry)
	}
}

func (m *module) make(dev *driver.Device, entry, source string) error {
	image, err := dev.Compile(entry, source, driver.CompileOptions{Options: kernel.Options()})
	if err != nil {
		return err
	}
	if m.m, err = dev.Load(image); err != nil {
		return err
	}
	if m.f, err = m.m.Function(entry); err != nil {
		return errors.Join(err, m.m.Close())
	}
	return nil
}

// kernels is work that launches kernels, one after the other.
type kernels []launch

type launch struct {
	f     driver.Function
	entry string
	grid  int
	args  []byte
}

func (b *Backend) kernels(list []kernel.Launch, m kernel.Memory) kernels {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := make(kernels, len(list))
	for i := range list {
		l := &list[i]
		k[i] = launch{b.modules[l.Entry].f, l.Entry, l.Grid, l.Args(m)}
	}
	return k
}

func (k kernels) enqueue(s *driver.Stream) error {
	for i := range k {
		if err := s.Launch(k[i].f, k[i].grid, kernel.Block, 0, k[i].args); err != nil {
			return err
		}
	}
	return nil
}

func (k kernels) launches() int { return len(k) }

// String is, for example, "fused×12": the kinds of the kernels, whose texts have goldens
// of their own, and their blocks.
func (k kernels) String() string {
	var names []string
	for _, l := range k {
		kind, _, _ := strings.Cut(l.entry, "_")
		names = append(names, fmt.Sprintf("%s×%d", kind, l.grid))
	}
	return strings.Join(names, " ")
}

// begin is a collective on a bucket.
type begin struct {
	comm reducer
	req  collective.Request
}

// refusedError is that of a collective which could not be put onto a stream, or of a capture
// that others may wait for: who has it ends the group (see nccl.Comm.Enqueue and Meets).
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// start is the work of a Start.
func (p *program) start(op plan.Start) work {
	v := &p.plan.Values[op.Bucket]
	req := collective.Request{Kind: op.Kind, Op: op.Op, Label: op.Label, Vec: deviceVec(p.place(op.Bucket), v.DType, v.Dims.Len())}
	p.moved[op.Number] = int64(v.Bytes())
	p.requests = append(p.requests, req)
	return &begin{p.comm, req}
}

func (b *begin) enqueue(s *driver.Stream) error {
	if err := b.comm.Enqueue(s, b.req); err != nil {
		return &refusedError{err}
	}
	return nil
}

func (b *begin) launches() int  { return 1 }
func (b *begin) String() string { return b.req.String() }
