package cuda

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/collective/nccl"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// apart is the size of arrays that keep their memory to themselves, so that small
// steps can run side by side (see plan.Options.Apart).
const apart = 256 << 10

// joined is how many elements the images have of a convolution that is several by the
// same weights, at most: beyond, each fills a device for long, and joined they would wait
// for each other.
const joined = 64 << 20

// Compile makes a program of the live part of g.
func (b *Backend) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p := &program{b: b, name: o.Name, profile: o.Profile, tracer: o.Trace, moved: map[int]int64{}}
	if o.Comm != nil {
		c, ok := o.Comm.(reducer)
		if !ok {
			return nil, fmt.Errorf("program %q: its collectives are to go over a %T: want what the backend's Connect makes", o.Name, o.Comm)
		}
		if _, own := o.Comm.(*nccl.Comm); own && o.Deterministic && !b.c.Deterministic {
			return nil, fmt.Errorf("program %q: its bits are to be the same whatever the number of ranks, and NCCL adds up in an order of its own: want a backend with Config.Deterministic", o.Name)
		}
		p.comm = c
	}
	if err := p.queueing(func() error { return p.compile(g, o) }); err != nil {
		return nil, errors.Join(fmt.Errorf("program %q: %w", o.Name, b.full("", err)), p.Close())
	}
	return p, nil
}

func (p *program) compile(g *graph.Graph, o exec.Options) error {
	vars, ok := o.Vars.(*variables)
	if o.Vars != nil && (!ok || vars.b != p.b) {
		return fmt.Errorf("the variables belong to another backend (%T)", o.Vars)
	}
	if err := exec.CheckRanks(g, o.Comm); err != nil {
		return err
	}
	p.plan = plan.New(g, p.b.options(o, vars))
	if err := p.bind(vars); err != nil {
		return err
	}
	jobs, err := p.jobs(o)
	if err != nil {
		return err
	}
	if need, ok := p.plan.AllocateWithin(o.MaxBytes); !ok {
		return &exec.MemoryError{Need: need, Max: o.MaxBytes}
	}
	if err := p.allocate(); err != nil {
		return err
	}
	p.launches = Launches(p.plan, func(i int) bool { return jobs[i] == nil })
	if err := p.makeUnits(jobs); err != nil {
		return err
	}
	p.side, p.single = newSchedule(p.plan, p.launches, len(p.b.lanes)), newSchedule(p.plan, p.launches, 1)
	p.spread = p.b.libs.convs == nil
	p.eager = p.b.c.Graphs == GraphsOff || p.reducing() && !p.comm.Capturable()
	if p.reducing() {
		if err := p.b.inTurn(p.agree); err != nil {
			return err
		}
	}
	return p.makeEvents()
}

// agree compares what all ranks will do.
func (p *program) agree() error {
	if err := p.comm.Agree(context.Background(), p.requests); err != nil {
		return err
	}
	return p.agreeOnGraphs()
}

// agreeOnGraphs has no rank capture what another one launches step by step.
func (p *program) agreeOnGraphs() error {
	must := p.b.c.Graphs == GraphsOn
	if !p.comm.Capturable() {
		if !must {
			return nil
		}
		err := errors.New("it is to be captured, and what ranks reduce through host memory is not: want a GPU for each rank, and NCCL, or captures only where they can be (--cuda-graph auto)")
		p.comm.Abort(err) // others may be told otherwise
		return err
	}
	var not error
	if p.eager {
		not = errors.New("it is not captured")
	}
	all, _, err := p.council(context.Background(), fmt.Sprintf("whether program %q may be captured", p.name), not)
	if err == nil && !all && !p.eager && must {
		err = errors.New("it is to be captured, and on another rank it is not to be: want all ranks alike")
		p.comm.Abort(err)
	}
	p.eager = p.eager || !all
	return err
}

// PlanOptions are the options of plans for GPUs that do not depend on the program.
func PlanOptions(p Precision) plan.Options {
	return plan.Options{WidenBF16: true, WeightsLast: true, BF16Images: p == BF16, Apart: apart, Join: joined}
}

// options are the options of a program's plan.
func (b *Backend) options(o exec.Options, vars *variables) plan.Options {
	po := PlanOptions(b.c.Precision)
	po.World, po.Rank = exec.Ranks(o.Comm)
	po.Name, po.Remat, po.Deterministic = o.Name, o.Remat, o.Deterministic
	if o.Remat { // of images as large as those, joined, little would be saved
		po.Join = 0
	}
	if vars != nil {
		po.VarLast = vars.order
	}
	return po
}

// bind finds the variables.
func (p *program) bind(vars *variables) error {
	if len(p.plan.Vars) > 0 && vars == nil {
		return fmt.Errorf("the graph has variables (the first is %q), and none were given", p.plan.Vars[0].Name)
	}
	for _, want := range p.plan.Vars {
		at, err := vars.take(want.Name, want.Type, p.plan.Values[want.Value].Last)
		if err != nil {
			return err
		}
		p.vars = append(p.vars, at)
		p.stats.VarBytes += int64(want.Type.Bytes())
	}
	return nil
}

// allocate makes the memory of the plan.
func (p *program) allocate() (err error) {
	if p.arena, err = p.alloc(int64(p.plan.ArenaBytes), "intermediate values"); err != nil {
		return err
	}
	if n := p.plan.BucketBytes; n > 0 {
		what := fmt.Sprintf("buckets of program %q", p.name)
		var mem collective.Vec
		err := p.b.inTurn(func() (err error) { mem, err = p.comm.Alloc(n); return err })
		if err != nil {
			return p.b.full(what, fmt.Errorf("%d bytes of buckets: %w", n, err))
		}
		p.bucket = driver.AddressOf(mem)
		p.b.hold(p.bucket, int64(n), what) // until the Comm ends
	}
	p.in, p.out, p.faulty = newRegion(p.plan.Inputs), newRegion(p.plan.Outputs), kernel.Indexed(p.plan)
	if p.in.at, err = p.alloc(int64(p.in.bytes), "inputs"); err != nil {
		return err
	}
	if p.out.at, err = p.alloc(p.out.room(p.faultBytes()), "outputs"); err != nil {
		return err
	}
	if err := p.b.upload(p.faults(), make([]byte, p.faultBytes())); err != nil {
		return err
	}
	for _, e := range p.plan.Inputs {
		p.inputs = append(p.inputs, exec.NewTensor(e.Type))
	}
	for _, e := range p.plan.Outputs {
		p.outputs = append(p.outputs, exec.NewTensor(e.Type))
	}
	for range depth {
		if _, err := p.newSlot(); err != nil {
			return err
		}
	}
	return nil
}

// alloc takes memory that Close gives back.
func (p *program) alloc(bytes int64, what string) (driver.Ptr, error) {
	at, err := p.b.alloc(bytes, fmt.Sprintf("%s of program %q", what, p.name))
	if err == nil && at != 0 {
		p.owned = append(p.owned, at)
	}
	return at, err
}

// faults is where kernels tell of indices out of range: behind the outputs, so that
// one copy brings both.
func (p *program) faults() driver.Ptr { return p.out.at + driver.Ptr(p.out.bytes) }

// place is the address of a value.
func (p *program) place(v int) driver.Ptr {
	if p.plan.Values[v].Dims.Len() == 0 { // which may be placed at the very end
		return p.faults()
	}
	space, index, off := p.plan.View(v)
	at := driver.Ptr(off)
	switch space {
	case plan.Arena:
		at += p.arena
	case plan.Bucket:
		at += p.bucket
	case plan.Input:
		at += p.in.at + driver.Ptr(p.in.offsets[index])
	case plan.Output:
		at += p.out.at + driver.Ptr(p.out.offsets[index])
	case plan.Var:
		at += p.vars[index]
	}
	return at
}

// memory is where step i finds its arrays.
func (p *program) memory(i int) kernel.Memory {
	return kernel.Memory{
		Value:    func(v int) uint64 { return uint64(p.place(v)) },
		Scratch:  uint64(p.arena) + uint64(p.plan.Steps[i].ScratchAt),
		Counters: uint64(p.counters[i]),
		Fault:    uint64(p.faultAt(i)),
	}
}

// makeEvents makes what orders the lanes, and completes the statistics.
func (p *program) makeEvents() (err error) {
	p.events = make([]*driver.Event, len(p.units))
	for i := range p.units {
		if p.side.signals[i] || p.single.signals[i] {
			if p.events[i], err = p.b.dev.NewEvent(false); err != nil {
				return err
			}
		}
	}
	for range len(p.b.lanes) + 2 {
		e, err := p.b.dev.NewEvent(false)
		if err != nil {
			return err
		}
		p.joins = append(p.joins, e)
	}
	p.ops = make([]exec.OpStats, len(p.steps))
	p.stats.Nodes, p.stats.PeakBytes = p.plan.LiveNodes, int64(p.plan.ArenaBytes+p.plan.BucketBytes)
	for i := range p.units {
		if w := p.units[i].work; w != nil {
			p.stats.Steps += w.launches()
		}
	}
	return nil
}
