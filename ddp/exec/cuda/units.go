package cuda

import (
	"fmt"
	"slices"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/choose"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
)

// What shares a launch, in points: see DESIGN.md.
const (
	chainPoints = 4096    // of a step that one block does after others, or that reduces
	batchPoints = 1 << 18 // of a step beside others: larger ones fill a device
)

// unit is what is put onto a stream at once: a step, or small ones that share a launch.
type unit struct {
	work  work   // nil for a Wait, and where there is nothing to do
	steps []int  // of the plan
	op    string // for errors: the step with its parameters, or what the batch is
	scope string
}

// Launches are the steps of an allocated plan in launches. With apart every step is one
// of its own, in the plan's order: sums in a batch are added up in another order than
// in a step's own kernel, and what shares a launch depends on all of the graph.
func Launches(p *plan.Plan, apart bool) []plan.Launch {
	if !apart {
		return p.Launches(plan.Together{Chain: chainPoints, Batch: batchPoints, Can: func(i int) bool {
			f, ok := p.Steps[i].Op.(*plan.Fused)
			return ok && kernel.Batches(p, i) && (len(f.Sums) == 0 || f.Dims.Len() <= chainPoints)
		}})
	}
	launches := make([]plan.Launch, len(p.Steps))
	for i, deps := range p.Deps() {
		launches[i] = plan.Launch{Chains: [][]int{{i}}, Deps: deps}
	}
	return launches
}

// batched says whether a launch is of several steps.
func batched(l plan.Launch) bool { return len(l.Chains) > 1 || len(l.Chains[0]) > 1 }

// texts are the kernels of a unit before they are loaded.
type texts struct {
	list  []kernel.Launch // of a step
	batch *kernel.Batch   // of several
}

// makeUnits makes what is launched for the allocated plan.
func (p *program) makeUnits(jobs []choose.Kernel) error {
	all := make([]texts, len(p.launches))
	sources := map[string]string{} // by entry
	for n, l := range p.launches {
		if err := all[n].write(p.plan, l, jobs); err != nil {
			return fmt.Errorf("%s: %w", at(&p.plan.Steps[l.Chains[0][0]]), err)
		}
		for _, k := range all[n].list {
			sources[k.Entry] = k.Source
		}
		if b := all[n].batch; b != nil {
			sources[b.Entry] = b.Source
		}
	}
	if err := p.b.load(sources); err != nil {
		return err
	}
	programs, err := p.putPrograms(all)
	if err != nil {
		return err
	}
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		p.steps = append(p.steps, step{op: s.Op.String(), kind: string(s.Kind()), scope: s.Scope, flops: flops(p.plan, s)})
	}
	for n, l := range p.launches {
		steps := slices.Concat(l.Chains...)
		first := &p.steps[steps[0]]
		u := unit{steps: steps, op: first.op, scope: first.scope}
		if b := all[n].batch; b != nil {
			u.op = fmt.Sprintf("%d small steps in one launch, the first %s", len(steps), first.op)
			u.work = p.b.batch(b, programs[n])
		} else {
			u.work = p.stepWork(steps[0], jobs[steps[0]], all[n].list)
		}
		p.units = append(p.units, u)
	}
	return nil
}

// write makes the kernels of a launch, unless it is a collective's or a library's.
func (t *texts) write(p *plan.Plan, l plan.Launch, jobs []choose.Kernel) (err error) {
	if batched(l) {
		t.batch, err = kernel.ForChains(p, l.Chains)
		return err
	}
	i := l.Chains[0][0]
	switch p.Steps[i].Op.(type) {
	case plan.Start, plan.Wait:
		return nil
	}
	if jobs[i] == nil {
		t.list, err = kernel.For(p, i)
	}
	return err
}

// putPrograms puts the programs of batches onto the device, and says where, by unit.
func (p *program) putPrograms(all []texts) ([]driver.Ptr, error) {
	var bytes []byte
	offsets := make([]int, len(all))
	for n, t := range all {
		if t.batch == nil {
			continue
		}
		offsets[n] = len(bytes)
		bytes = append(bytes, t.batch.Program(func(v int) uint64 { return uint64(p.place(v)) })...)
		bytes = append(bytes, make([]byte, -len(bytes)&(plan.Align-1))...)
	}
	base, err := p.alloc(int64(len(bytes)), "small steps that share launches")
	if err != nil {
		return nil, err
	}
	at := make([]driver.Ptr, len(all))
	for n := range all {
		at[n] = base + driver.Ptr(offsets[n])
	}
	return at, p.b.upload(base, bytes)
}

// batch is the work of a batch whose program lies there.
func (b *Backend) batch(t *kernel.Batch, program driver.Ptr) work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return kernels{{b.modules[t.Entry].f, t.Entry, t.Grid, t.Args(uint64(program))}}
}

// stepWork is the work of a step alone; nil where there is none.
func (p *program) stepWork(i int, job choose.Kernel, list []kernel.Launch) work {
	s := &p.plan.Steps[i]
	if op, ok := s.Op.(plan.Start); ok {
		return p.start(op)
	}
	switch {
	case job != nil:
		return p.heavy(s, job)
	case len(list) > 0:
		return p.b.kernels(list, p.memory(i))
	}
	return nil
}
