package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

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

// module is a kernel that is loaded.
type module struct {
	m *driver.Module
	f driver.Function
}

func (m *module) close() error { return m.m.Close() }

// load compiles and loads kernels, by their entries, that are not loaded yet.
func (b *Backend) load(sources map[string]string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	free := make(chan struct{}, max(1, min(runtime.NumCPU(), 16)))
	for entry, source := range sources {
		if b.modules[entry] != nil {
			continue
		}
		b.modules[entry] = &module{}
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			m, err := b.compile(entry, source)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = fmt.Errorf("kernel %s: %w", entry, err)
			}
			if err != nil {
				m = nil
			}
			b.compiled = append(b.compiled, compiled{entry, m})
		})
	}
	wg.Wait()
	for _, c := range b.compiled {
		if b.modules[c.entry] = c.module; c.module == nil {
			delete(b.modules, c.entry)
		}
	}
	b.compiled = nil
	return first
}

// compiled is a kernel that was just loaded, nil if it could not be.
type compiled struct {
	entry  string
	module *module
}

func (b *Backend) compile(entry, source string) (*module, error) {
	image, err := b.dev.Compile(entry, source, driver.CompileOptions{Options: kernel.Options()})
	if err != nil {
		return nil, err
	}
	m, err := b.dev.Load(image)
	if err != nil {
		return nil, err
	}
	f, err := m.Function(entry)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &module{m, f}, nil
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
