package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// backend is an exec.Backend that runs plans by the kernels of this package, on the
// CPU: what conformance tests need, and no more.
type backend struct {
	*device
	o     plan.Options
	batch bool // small fused steps are done in batches
	alike bool // steps of one kernel share launches
	index int

	shared int // launches of several steps of one kernel, so far
}

func (b *backend) Name() string       { return "kernels by gcc" }
func (b *backend) Close() error       { return nil }
func (b *backend) NewVars() exec.Vars { return &exec.HostVars{} }
func (b *backend) Connect(_ context.Context, host collective.Comm) (collective.Comm, error) {
	return host, nil
}

func (b *backend) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	po := b.o
	po.Name, po.Remat, po.Deterministic = o.Name, o.Remat, o.Deterministic
	po.World, po.Rank = exec.Ranks(o.Comm)
	p := &program{b: b, o: o, plan: plan.New(g, po)}
	if err := p.compile(); err != nil {
		return nil, fmt.Errorf("program %q: %w", o.Name, err)
	}
	return p, nil
}

// program is a plan in the memory of the device.
type program struct {
	b        *backend
	o        exec.Options
	plan     *plan.Plan
	launches [][]Launch       // by step
	counters []int            // by step, where they lie
	batches  map[int]*batched // by the first step of the batch
	order    []int            // steps as they are done; of a batch its first
	start    map[space]int    // where memories begin
	size     map[space]int
	inputs   []*exec.Tensor
	outputs  []*exec.Tensor
	fault    int
	pending  map[int]collective.Pending
	launched context.Context
	closed   bool
	stats    exec.Stats
	trace    func(exec.Event) // of the run under way
	began    map[int]time.Time
}

type space struct {
	space plan.Space
	index int
}

func (p *program) compile() error {
	for i := range p.plan.Steps {
		p.plan.Steps[i].Scratch = Scratch(p.plan, i)
	}
	p.plan.Allocate()
	if need := int64(p.plan.ArenaBytes + p.plan.BucketBytes); p.o.MaxBytes > 0 && need > p.o.MaxBytes {
		return &exec.MemoryError{Need: need, Max: p.o.MaxBytes}
	}
	for i := range p.plan.Steps {
		switch p.plan.Steps[i].Op.(type) {
		case plan.Start, plan.Wait:
			p.launches, p.counters = append(p.launches, nil), append(p.counters, 0)
			continue
		}
		l, err := For(p.plan, i)
		if err != nil {
			return err
		}
		p.launches, p.counters = append(p.launches, l), append(p.counters, p.b.alloc(Counters(l)))
		clear(p.b.memory[p.counters[i]:][:Counters(l)])
	}
	p.start, p.size, p.pending = map[space]int{}, map[space]int{}, map[int]collective.Pending{}
	p.place(plan.Arena, 0, p.plan.ArenaBytes)
	p.place(plan.Bucket, 0, p.plan.BucketBytes)
	for i, e := range p.plan.Inputs {
		p.inputs = append(p.inputs, exec.NewTensor(e.Type))
		p.place(plan.Input, i, e.Type.Bytes())
	}
	for i, e := range p.plan.Outputs {
		p.outputs = append(p.outputs, exec.NewTensor(e.Type))
		p.place(plan.Output, i, e.Type.Bytes())
	}
	for i, e := range p.plan.Vars {
		if p.o.Vars == nil {
			return fmt.Errorf("variable %q is not set: no variables were given", e.Name)
		}
		if _, ok := p.o.Vars.(*exec.HostVars); !ok {
			return fmt.Errorf("the variables belong to another backend (%T)", p.o.Vars)
		}
		typ, ok := p.o.Vars.Type(e.Name)
		if !ok {
			return fmt.Errorf("variable %q is not set", e.Name)
		}
		if typ != e.Type {
			return fmt.Errorf("variable %q is %v, want %v", e.Name, typ, e.Type)
		}
		p.place(plan.Var, i, e.Type.Bytes())
	}
	p.fault = p.b.alloc(FaultBytes)
	p.stats.Nodes, p.stats.Steps = p.plan.LiveNodes, len(p.plan.Steps)
	p.stats.PeakBytes = int64(p.plan.ArenaBytes + p.plan.BucketBytes)
	return p.inBatches()
}

// batched is a kernel of several steps and its argument.
type batched struct {
	*Launch
	args   []byte
	within []piece
}

// touched are what the kernels of a step may touch.
func (p *program) touched(i int) (all []piece) {
	s := &p.plan.Steps[i]
	for _, v := range s.In {
		all = append(all, piece{p.at(v), p.plan.Values[v].Bytes(), false})
	}
	for _, v := range s.Out {
		all = append(all, piece{p.at(v), p.plan.Values[v].Bytes(), true})
	}
	scratch := p.start[space{plan.Arena, 0}] + s.ScratchAt
	return append(all, piece{scratch, s.Scratch, true}, piece{p.counters[i], Counters(p.launches[i]), true}, piece{p.fault, FaultBytes, true})
}

// put puts what the kernel of several steps reads into the memory of the device.
func (p *program) put(l *Launch, steps []int, program []byte, args func(at uint64) []byte) {
	at := p.b.alloc(len(program))
	copy(p.b.memory[at:], program)
	b := &batched{l, args(deviceBase + uint64(at)), []piece{{at, len(program), false}}}
	for _, i := range steps {
		b.within = append(b.within, p.touched(i)...)
	}
	p.batches[steps[0]] = b
	p.order = append(p.order, steps[0])
}

// memory is where step i finds its arrays.
func (p *program) memory(i int) Memory {
	return Memory{
		Value:    func(v int) uint64 { return deviceBase + uint64(p.at(v)) },
		Scratch:  deviceBase + uint64(p.start[space{plan.Arena, 0}]+p.plan.Steps[i].ScratchAt),
		Counters: deviceBase + uint64(p.counters[i]),
		Fault:    deviceBase + uint64(p.fault),
	}
}

// inAlikes puts the steps in order, with those of one kernel together.
func (p *program) inAlikes() error {
	for _, l := range p.plan.Launches(plan.Together{Alike: func(i int) string { return AlikeName(p.plan, i) }}) {
		steps := slices.Concat(l.Chains...)
		if !l.Alike {
			p.order = append(p.order, steps...)
			continue
		}
		a, err := ForAlike(p.plan, steps)
		if err != nil {
			return err
		}
		p.b.shared++
		p.put(&a.Launch, steps, a.Table(p.memory), a.Args)
	}
	return nil
}

// inBatches puts the steps in order, and small ones into batches if asked.
func (p *program) inBatches() error {
	p.batches = map[int]*batched{}
	if p.b.alike {
		return p.inAlikes()
	}
	if !p.b.batch {
		for i := range p.plan.Steps {
			p.order = append(p.order, i)
		}
		return nil
	}
	return chained(p.plan, func(steps []int) { p.order = append(p.order, steps...) }, func(b *Batch, steps []int) {
		p.put(&b.Launch, steps, b.Program(p.memory), b.Args)
	})
}

// chained gives what a plan launches to together where it is a batch, to alone where not.
func chained(p *plan.Plan, alone func(steps []int), together func(b *Batch, steps []int)) error {
	for _, l := range p.Launches(plan.Together{Chain: 1 << 20, Batch: 1 << 20, Most: 12}) {
		steps := slices.Concat(l.Chains...)
		if slices.ContainsFunc(steps, func(i int) bool { return !Batches(p, i) }) {
			alone(steps)
			continue
		}
		b, err := ForChains(p, l.Chains)
		if err != nil {
			return err
		}
		together(b, steps)
	}
	return nil
}

func (p *program) place(s plan.Space, index, bytes int) {
	at := space{s, index}
	p.start[at], p.size[at] = p.b.alloc(bytes), bytes
}

// at is where a value begins in the memory of the device.
func (p *program) at(v int) int {
	s, index, off := p.plan.View(v)
	return p.start[space{s, index}] + off
}

func (p *program) bytes(v int) []byte {
	at := p.at(v)
	return p.b.memory[at : at+p.plan.Values[v].Bytes()]
}

func (p *program) Depth() int { return 1 }

func (p *program) Input(name string) *exec.Tensor { return plan.Named(p.plan.Inputs, p.inputs, name) }
func (p *program) Output(name string) *exec.Tensor {
	return plan.Named(p.plan.Outputs, p.outputs, name)
}

func (p *program) Launch(ctx context.Context) error {
	switch {
	case p.closed:
		return errors.New("launched after Close")
	case p.launched != nil:
		return errors.New("launched again before Wait")
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	p.launched = ctx
	return nil
}

func (p *program) Wait(ctx context.Context) error {
	if p.launched == nil {
		return errors.New("Wait without Launch")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(p.launched, func() { cancel(context.Cause(p.launched)) })
	defer stop()
	p.launched = nil
	err := p.run(ctx)
	if err == nil {
		p.stats.Runs++
		p.b.index++
		p.b.order = p.b.index % 2 // backwards every other time
	}
	return err
}

func (p *program) run(ctx context.Context) error {
	p.trace, p.began = func(exec.Event) {}, map[int]time.Time{}
	if p.o.Trace != nil {
		if f := p.o.Trace(); f != nil {
			p.trace = f
		}
	}
	clear(p.b.memory[p.fault:][:FaultBytes])
	for i, e := range p.plan.Inputs {
		copy(p.bytes(e.Value), p.inputs[i].Bytes())
	}
	for _, e := range p.plan.Vars {
		t, err := p.o.Vars.Get(e.Name)
		if err != nil {
			return err
		}
		if p.plan.Values[e.Value].Last {
			t = exec.ChannelsLast(t)
		}
		copy(p.bytes(e.Value), t.Bytes())
	}
	for _, i := range p.order {
		s, began := &p.plan.Steps[i], time.Now()
		err := p.step(ctx, i)
		p.trace(exec.Event{Kind: string(s.Kind()), Name: s.Op.String(), Scope: s.Scope, Start: began, Time: time.Since(began), Travel: s.Travel()})
		if err != nil {
			err = fmt.Errorf("%s: %v: %w", p.plan.Steps[i].Scope, p.plan.Steps[i].Op, err)
			if p.o.Comm != nil {
				p.o.Comm.Abort(err)
			}
			return err
		}
	}
	for at, n := range p.size {
		if !p.b.intact(p.start[at], n) {
			return fmt.Errorf("a kernel has written beyond the memory %v %d", at.space, at.index)
		}
	}
	for i, e := range p.plan.Outputs {
		copy(p.outputs[i].Bytes(), p.bytes(e.Value))
	}
	for _, e := range p.plan.Vars {
		if err := p.keep(e); err != nil {
			return err
		}
	}
	return nil
}

// keep takes a variable back.
func (p *program) keep(e plan.External) error {
	v := &p.plan.Values[e.Value]
	t := exec.NewTensor(graph.Type{DType: v.DType, Shape: v.Dims})
	copy(t.Bytes(), p.bytes(e.Value))
	if v.Last {
		t = exec.ChannelsFirst(t)
	}
	return p.o.Vars.Set(e.Name, t)
}

func (p *program) step(ctx context.Context, i int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s := &p.plan.Steps[i]
	switch op := s.Op.(type) {
	case plan.Start:
		mem := p.bytes(op.Bucket)
		v := &p.plan.Values[op.Bucket]
		vec := collective.Vec{Type: v.DType, Len: v.Dims.Len(), Ptr: unsafe.Pointer(unsafe.SliceData(mem))}
		p.began[op.Number] = time.Now()
		p.pending[op.Number] = p.o.Comm.Start(collective.Request{Kind: op.Kind, Op: op.Op, Vec: vec, Label: op.Label})
		return nil
	case plan.Wait:
		err := p.pending[op.Number].Wait(ctx)
		began := p.began[op.Number]
		p.trace(exec.Event{Kind: exec.Collective, Name: op.Label, Start: began, Time: time.Since(began), Bytes: 1, Travel: s.Travel()})
		return err
	}
	if b := p.batches[i]; b != nil {
		p.b.within = b.within
		return p.b.device.runArgs(b.Launch, b.args)
	}
	scratch := p.start[space{plan.Arena, 0}] + s.ScratchAt
	if s.Scratch > 0 {
		spoil(p.b.memory[scratch : scratch+s.Scratch])
	}
	p.b.within = p.touched(i)
	for k := range p.launches[i] {
		if err := p.b.device.run(&p.launches[i][k], p.memory(i)); err != nil {
			return err
		}
	}
	return FaultOf(p.plan, p.b.memory[p.fault:][:FaultBytes])
}

func (p *program) Stats() exec.Stats      { return p.stats }
func (p *program) Dump(w io.Writer) error { return p.plan.Dump(w) }
func (p *program) Close() error           { p.closed = true; return nil }
