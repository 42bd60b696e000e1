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
	alikePoints = 1 << 22 // of the largest array of a step that shares its launch with its like
)

// collectivePatience is how many launches a small step that a collective depends on waits
// for others at most: see DESIGN.md.
const collectivePatience = 4

// unit is what is put onto a stream at once: a step, or small ones that share a launch.
type unit struct {
	work  work   // nil for a Wait, and where there is nothing to do
	steps []int  // of the plan
	op    string // for errors: the step with its parameters, or what the batch is
	scope string
}

// Launches are the steps of an allocated plan in launches; own says which steps are done
// by kernels of package kernel, and not by libraries. What shares a launch depends on all of
// the graph; what a step computes does not depend on it.
func Launches(p *plan.Plan, own func(step int) bool) []plan.Launch {
	batches := map[int]bool{} // which is asked several times, and writes the step's text
	return p.Launches(plan.Together{Chain: chainPoints, Batch: batchPoints, Patience: collectivePatience, Can: func(i int) bool {
		f, ok := p.Steps[i].Op.(*plan.Fused)
		if !ok || len(f.Sums) > 0 && f.Dims.Len() > chainPoints {
			return false
		}
		if _, asked := batches[i]; !asked {
			batches[i] = kernel.Batches(p, i)
		}
		return batches[i]
	}, Alike: func(i int) string {
		if !own(i) || largest(p, i) > alikePoints {
			return ""
		}
		return kernel.AlikeName(p, i)
	}})
}

// batched says whether a launch is of several steps.
func batched(l plan.Launch) bool { return len(l.Chains) > 1 || len(l.Chains[0]) > 1 }

// largest is the number of elements of the largest array of a step.
func largest(p *plan.Plan, i int) (n int) {
	for _, vs := range [][]int{p.Steps[i].In, p.Steps[i].Out} {
		for _, v := range vs {
			n = max(n, p.Values[v].Dims.Len())
		}
	}
	return n
}

// texts are the kernels of a unit before they are loaded.
type texts struct {
	list  []kernel.Launch // of a step
	batch *kernel.Batch   // of several small ones
	alike *kernel.Alike   // of several of one kernel
}

// counters is how many bytes of counters a step of chain k needs.
func (t *texts) counters(k, step int) int {
	switch {
	case t.alike != nil:
		return t.alike.Counters(k)
	case t.batch != nil:
		return t.batch.Counters(step)
	}
	return kernel.Counters(t.list)
}

// program is what the kernel of several steps reads.
func (t *texts) program(p *program) []byte {
	switch {
	case t.batch != nil:
		return t.batch.Program(p.memory)
	case t.alike != nil:
		return t.alike.Table(p.memory)
	}
	return nil
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
		if a := all[n].alike; a != nil {
			sources[a.Entry] = a.Source
		}
	}
	if err := p.b.load(sources); err != nil {
		return err
	}
	if err := p.putCounters(all); err != nil {
		return err
	}
	programs, err := p.putPrograms(all)
	if err != nil {
		return err
	}
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		p.steps = append(p.steps, step{op: s.Op.String(), kind: string(s.Kind()), scope: s.Scope, flops: flops(p.plan, s), travel: s.Travel()})
	}
	for n, l := range p.launches {
		steps := slices.Concat(l.Chains...)
		first := &p.steps[steps[0]]
		u := unit{steps: steps, op: first.op, scope: first.scope}
		switch t := all[n]; {
		case t.batch != nil:
			u.op = fmt.Sprintf("%d small steps in one launch, the first %s", len(steps), first.op)
			u.work = p.b.shared(&t.batch.Launch, t.batch.Args(uint64(programs[n])))
		case t.alike != nil:
			u.op = fmt.Sprintf("%d steps of one kernel in one launch, the first %s", len(steps), first.op)
			u.work = p.b.shared(&t.alike.Launch, t.alike.Args(uint64(programs[n])))
		default:
			u.work = p.stepWork(steps[0], jobs[steps[0]], t.list)
		}
		p.units = append(p.units, u)
	}
	return nil
}

// write makes the kernels of a launch, unless it is a collective's or a library's.
func (t *texts) write(p *plan.Plan, l plan.Launch, jobs []choose.Kernel) (err error) {
	if l.Alike {
		t.alike, err = kernel.ForAlike(p, slices.Concat(l.Chains...))
		return err
	}
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

// putPrograms puts what the kernels of several steps read onto the device, and says where,
// by unit.
func (p *program) putPrograms(all []texts) ([]driver.Ptr, error) {
	var bytes []byte
	offsets := make([]int, len(all))
	for n := range all {
		offsets[n] = len(bytes)
		bytes = append(bytes, all[n].program(p)...)
		bytes = append(bytes, make([]byte, -len(bytes)&(plan.Align-1))...)
	}
	base, err := p.alloc(int64(len(bytes)), "steps that share launches")
	if err != nil {
		return nil, err
	}
	at := make([]driver.Ptr, len(all))
	for n := range all {
		at[n] = base + driver.Ptr(offsets[n])
	}
	return at, p.b.upload(base, bytes)
}

// putCounters makes the counters by which blocks of a step's kernels meet: zero, and
// each step's its own, as steps run side by side.
func (p *program) putCounters(all []texts) (err error) {
	p.counters = make([]driver.Ptr, len(p.plan.Steps))
	bytes := 0
	for n, l := range p.launches {
		for k, c := range l.Chains {
			for _, i := range c {
				p.counters[i] = driver.Ptr(bytes)
				bytes += (all[n].counters(k, i) + plan.Align - 1) / plan.Align * plan.Align
			}
		}
	}
	base, err := p.alloc(int64(bytes), "counters of blocks")
	if err != nil {
		return err
	}
	for i := range p.counters {
		p.counters[i] += base
	}
	return p.b.upload(base, make([]byte, bytes))
}

// shared is the work of a kernel that does several steps.
func (b *Backend) shared(l *kernel.Launch, args []byte) work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return kernels{{b.modules[l.Entry].f, l.Entry, l.Grid, args}}
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
