package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/moves"
	"ebtrain/ddp/exec/cpu/pointwise"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// joined is how many elements the images have of a convolution that is several by the
// same weights, at most. What is done to weights before a product, and to their gradients
// behind it, is then done once; beyond, it is little beside the images.
const joined = 1 << 20

// kernel does one step.
type kernel interface{ Run() error }

// step is a kernel and what is known about it.
type step struct {
	kernel
	op     string // with its parameters, for errors
	kind   string // for statistics
	scope  string
	flops  int64
	travel *exec.Travel
}

// Compile makes a program of the live part of g.
func (b *Backend) Compile(g *graph.Graph, o exec.Options) (exec.Program, error) {
	p := &program{b: b, name: o.Name, comm: o.Comm, profile: o.Profile, tracer: o.Trace, done: make(chan error, 1)}
	if err := exec.CheckRanks(g, o.Comm); err != nil {
		return nil, fmt.Errorf("program %q: %w", o.Name, err)
	}
	world, rank := exec.Ranks(o.Comm)
	p.plan = plan.New(g, plan.Options{Name: o.Name, World: world, Rank: rank, WidenBF16: true, Remat: o.Remat, Deterministic: o.Deterministic, Join: joined})
	var err error
	b.do(func() { err = p.compile(o) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("program %q: %w", o.Name, err), p.Close())
	}
	return p, nil
}

// compile prepares the engine's kernels, lays out the memory, and makes the
// kernel of every step.
func (p *program) compile(o exec.Options) error {
	if err := p.bind(o.Vars); err != nil {
		return err
	}
	problems, prepared := make([]problem, len(p.plan.Steps)), make([]engine.Kernel, len(p.plan.Steps))
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		problems[i] = problemOf(p.plan, s)
		k, scratch, err := p.prepare(s, problems[i])
		if err != nil {
			return fmt.Errorf("%s: %w", at(s), err)
		}
		prepared[i], s.Scratch = k, scratch
	}
	if need, ok := p.plan.AllocateWithin(o.MaxBytes); !ok {
		return &exec.MemoryError{Need: need, Max: o.MaxBytes}
	}
	if err := p.allocate(); err != nil {
		return err
	}
	for i := range p.plan.Steps {
		s := &p.plan.Steps[i]
		k, err := p.kernel(s, problems[i], prepared[i])
		if err != nil {
			return fmt.Errorf("%s: %w", at(s), err)
		}
		st := step{kernel: k, op: s.Op.String(), kind: string(s.Kind()), scope: s.Scope, travel: s.Travel()}
		if problems[i] != nil {
			st.flops = problems[i].Flops()
		}
		p.steps = append(p.steps, st)
	}
	p.attach()
	p.summarise()
	return nil
}

// attach gives the fused kernels memory for their registers, the same to all:
// they run one after the other.
func (p *program) attach() {
	size := 0
	for _, s := range p.steps {
		if k, ok := s.kernel.(pointwise.Kernel); ok {
			size = max(size, k.Buffer())
		}
	}
	for w := range p.b.threads {
		mem := exec.NewTensor(graph.T(graph.U8, size)).Bytes()
		for _, s := range p.steps {
			if k, ok := s.kernel.(pointwise.Kernel); ok {
				k.Attach(w, unsafe.Pointer(unsafe.SliceData(mem)))
			}
		}
	}
}

// at says which step: scope and op.
func at(s *plan.Step) string {
	if s.Scope == "" {
		return s.Op.String()
	}
	return s.Scope + ": " + s.Op.String()
}

// bind finds the variables.
func (p *program) bind(vars exec.Vars) error {
	if len(p.plan.Vars) == 0 {
		return nil
	}
	v, ok := vars.(*exec.HostVars)
	if !ok {
		if vars == nil {
			return fmt.Errorf("the graph has variables (the first is %q), and none were given", p.plan.Vars[0].Name)
		}
		return fmt.Errorf("the variables belong to another backend (%T)", vars)
	}
	for _, want := range p.plan.Vars {
		t := v.Tensor(want.Name)
		if t == nil {
			return fmt.Errorf("variable %q is not set; want %v", want.Name, want.Type)
		}
		if t.Type != want.Type {
			return fmt.Errorf("variable %q is %v, want %v", want.Name, t.Type, want.Type)
		}
		p.vars = append(p.vars, t)
	}
	return nil
}

// prepare asks the engine for its kernel of a step, whose problem is nil if it is
// none for an engine, and says how much scratch memory the step needs.
func (p *program) prepare(s *plan.Step, prob problem) (engine.Kernel, int, error) {
	if f, ok := s.Op.(*plan.Fused); ok {
		return nil, pointwise.Scratch(f, p.b.jobs), nil
	}
	if prob == nil || p.plan.Values[s.Out[0]].DType != graph.F32 || p.termless(s) {
		return nil, 0, nil
	}
	k, err := prob.prepare(p.b.eng, p.b.bf16)
	if err != nil {
		return nil, 0, err
	}
	p.engine = append(p.engine, k)
	return k, k.Scratch(), nil
}

// termless says whether an operand of a product is empty: its result is 0, or
// empty too, and engines take no such problem.
func (p *program) termless(s *plan.Step) bool {
	return p.plan.Values[s.In[0]].Dims.Len() == 0 || p.plan.Values[s.In[1]].Dims.Len() == 0
}

// allocate makes the memory of the plan.
func (p *program) allocate() error {
	p.arena = exec.NewTensor(graph.T(graph.U8, p.plan.ArenaBytes)).Bytes()
	if p.plan.BucketBytes > 0 {
		mem, err := p.comm.Alloc(p.plan.BucketBytes)
		if err != nil {
			return fmt.Errorf("%d bytes of buckets: %w", p.plan.BucketBytes, err)
		}
		p.bucket = mem.Bytes()
	}
	for _, in := range p.plan.Inputs {
		p.inputs = append(p.inputs, exec.NewTensor(in.Type))
	}
	for _, out := range p.plan.Outputs {
		p.outputs = append(p.outputs, exec.NewTensor(out.Type))
	}
	n := 0
	for _, s := range p.plan.Steps {
		if _, ok := s.Op.(plan.Start); ok {
			n++
		}
	}
	p.pending = make([]collective.Pending, n)
	return nil
}

// place is where a value lies.
func (p *program) place(v int) array.Place {
	val := &p.plan.Values[v]
	space, index, off := p.plan.View(v)
	var mem []byte
	switch space {
	case plan.Arena:
		mem = p.arena
	case plan.Bucket:
		mem = p.bucket
	case plan.Input:
		mem = p.inputs[index].Bytes()
	case plan.Output:
		mem = p.outputs[index].Bytes()
	case plan.Var:
		mem = p.vars[index].Bytes()
	}
	if val.Dims.Len() == 0 { // which may be placed at the very end
		off = 0
	}
	return array.Place{Mem: unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), off), DType: val.DType, Dims: val.Dims}
}

func (p *program) places(vs []int) []array.Place {
	var ps []array.Place
	for _, v := range vs {
		ps = append(ps, p.place(v))
	}
	return ps
}

// kernel makes the kernel of a step.
func (p *program) kernel(s *plan.Step, prob problem, ek engine.Kernel) (kernel, error) {
	in, out := p.places(s.In), p.places(s.Out)
	jobs := p.b.jobs
	scratch := unsafe.Pointer(unsafe.SliceData(p.arena))
	if s.Scratch > 0 {
		scratch = unsafe.Add(scratch, s.ScratchAt)
	}
	if ek != nil {
		return &engineStep{ek, out[0].Mem, in[0].Mem, in[1].Mem, scratch}, nil
	}
	switch op := s.Op.(type) {
	case *plan.Fused:
		return pointwise.New(jobs, op, in, out, scratch), nil
	case plan.Start:
		return newBegin(p, op, s.Travel(), p.place(op.Bucket)), nil
	case plan.Wait:
		return &wait{p, op.Number}, nil
	case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW, graph.MatMul:
		if p.termless(s) {
			return moves.New(jobs, plan.Fill{}, nil, out)
		}
		return newLoop64(jobs, prob, out[0], in[0], in[1])
	}
	return moves.New(jobs, s.Op, in, out)
}
