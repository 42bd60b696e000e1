package cuda

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/cublaslt"
	"ebtrain/ddp/exec/cuda/cudnn"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/plan"
)

// workspace bounds what a kernel of a library may take besides.
const workspace = 256 << 20

// libraries do convolutions and products, and remember which of their kernels does
// which. The goroutine that queues runs uses them.
type libraries struct {
	b        *Backend
	convs    linalg.Library // cuDNN, nil without
	products linalg.Library // cublasLt, nil without
	choosers map[choosing]*choose.Chooser
	alike    bool // all ranks have the same
}

// choosing is how kernels are chosen.
type choosing struct {
	together bool // by all ranks
	untimed  bool
}

// openLibraries opens what there is, and says what there is not.
func (b *Backend) openLibraries() (*libraries, error) {
	l := &libraries{b: b, choosers: map[choosing]*choose.Chooser{}}
	if b.c.Plain {
		return l, nil
	}
	convs, err := cudnn.New(b.dev, workspace)
	switch {
	case err == nil:
		l.convs = convs
	case !missing(err):
		return nil, err
	default:
		b.c.Say(fmt.Sprintf("convolutions are done by plain kernels, which takes longer: %v", err))
	}
	products, err := cublaslt.New(b.dev, workspace)
	switch {
	case err == nil:
		l.products = products
	case !missing(err):
		return nil, errors.Join(err, l.Close())
	default:
		b.c.Say(fmt.Sprintf("matrix products are done by plain kernels, which takes longer: %v", err))
	}
	return l, nil
}

// missing says whether an error means that a library was not found.
func missing(err error) bool {
	e, ok := errors.AsType[*driver.LoadError](err)
	return ok && e.Err == nil // none was there
}

// String names the libraries, for people.
func (l *libraries) String() string {
	var names []string
	for _, lib := range []linalg.Library{l.convs, l.products} {
		if lib != nil {
			names = append(names, lib.Name())
		}
	}
	if len(names) == 0 {
		return "plain kernels"
	}
	return strings.Join(names, ", ")
}

func (l *libraries) Close() error {
	var errs []error
	for _, c := range l.choosers {
		errs = append(errs, c.Close())
	}
	for _, lib := range []linalg.Library{l.convs, l.products} {
		if lib != nil {
			errs = append(errs, lib.Close())
		}
	}
	l.convs, l.products, l.choosers = nil, nil, nil
	return errors.Join(errs...)
}

// choose says by step how libraries do it, nil where a plain kernel of the step's own
// does. All ranks of a program that reduces choose alike; what one rank compiles alone,
// and what must not depend on times, is chosen without any.
func (l *libraries) choose(p *program, o exec.Options) ([]choose.Kernel, error) {
	list := make([]choose.Kernel, len(p.plan.Steps))
	_, alone := p.comm.(*borrowed)
	together := p.comm != nil && !alone
	if together {
		if err := l.compare(); err != nil {
			return nil, err
		}
	}
	if l.convs == nil && l.products == nil { // as on all ranks
		return list, nil
	}
	var problems []linalg.Problem
	var steps []int
	for i := range p.plan.Steps {
		if q := problemOf(p.plan, &p.plan.Steps[i], l.b.c.Precision.math()); q != nil {
			problems, steps = append(problems, q), append(steps, i)
		}
	}
	c := l.chooser(choosing{together, o.Deterministic || alone || !together && l.b.below() != nil})
	kernels, err := c.Choose(problems)
	if err != nil {
		return nil, err
	}
	for k, i := range steps {
		list[i] = kernels[k]
	}
	return list, nil
}

// compare is an error on all ranks where they have not the same libraries, also on those that
// have none: who has one waits for all of them to choose. It is asked once.
func (l *libraries) compare() error {
	if l.alike {
		return nil
	}
	o := choose.Options{Device: l.b.dev, Convolutions: l.convs, Products: l.products}
	err := choose.Compare(o, func(mine []byte) ([][]byte, error) {
		return collective.GatherBytes(context.Background(), l.b.below(), "what ranks compute with", mine)
	})
	l.alike = err == nil
	return err
}

// chooser is the one for that way of choosing.
func (l *libraries) chooser(how choosing) *choose.Chooser {
	if c := l.choosers[how]; c != nil {
		return c
	}
	b := l.b
	o := choose.Options{
		Device: b.dev, Stream: b.lanes[0], Alloc: b.alloc, Free: b.free, Convolutions: l.convs, Products: l.products,
		Plain: b.plain, Few: b.few, Cast: b.cast, Move: b.move, Untimed: how.untimed, File: b.c.Choices, Cache: b.c.Cache, Say: b.c.Say,
		Tick: func() { b.turns.Add(1) },
	}
	if how.together {
		o.Rank, o.Share = b.below().Rank(), b.fromRank0
	}
	c := choose.New(o)
	l.choosers[how] = c
	return c
}

// below is the Comm of the hosts that Connect was given, nil if that was none of package
// host.
func (b *Backend) below() collective.Comm {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host
}

// fromRank0 gives all ranks what rank 0 passes, over the host's Comm.
func (b *Backend) fromRank0(mine []byte) ([]byte, error) {
	n, host := []int64{int64(len(mine))}, b.below()
	do := func(v collective.Vec) error {
		return collective.Do(context.Background(), host, collective.Request{Kind: collective.Broadcast, Vec: v, Label: "kernels chosen"})
	}
	if err := do(collective.VecOf(n)); err != nil {
		return nil, err
	}
	if host.Rank() != 0 {
		mine = make([]byte, n[0])
	}
	if n[0] == 0 {
		return mine, nil
	}
	return mine, do(collective.VecOf(mine))
}

// heavy is work that a library's kernel does.
type heavy struct {
	k    choose.Kernel
	o    linalg.Operands
	work driver.Ptr
}

func (p *program) heavy(s *plan.Step, k choose.Kernel) work {
	h := &heavy{k: k, o: linalg.Operands{Dst: p.place(s.Out[0]), A: p.place(s.In[0]), B: p.place(s.In[1])}}
	if s.Scratch > 0 {
		h.work = p.arena + driver.Ptr(s.ScratchAt)
	}
	return h
}

func (h *heavy) enqueue(s *driver.Stream) error { return h.k.Enqueue(s, h.o, h.work) }
func (h *heavy) launches() int                  { return 1 }
func (h *heavy) String() string                 { return h.k.String() }
