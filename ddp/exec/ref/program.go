package ref

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"time"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// program is a compiled graph: its steps in order, and the memory they use.
type program struct {
	name    string
	g       *graph.Graph
	values  []*value // by ID, nil where dead
	steps   []step
	inputs  map[string]*exec.Tensor
	outputs map[string]*exec.Tensor
	vars    map[string]*exec.Tensor
	profile bool
	tracer  func() func(exec.Event)
	trace   func(exec.Event) // of the run under way, nil if nobody asks
	stats   exec.Stats
	travels int // collectives so far

	closed  bool
	running chan error // the result of the run under way, nil if there is none
	cancel  context.CancelFunc
}

// step computes one live node.
type step struct {
	node   graph.Node
	kind   string // of op, for statistics
	flops  int64
	travel *exec.Travel // of a collective
	run    func(context.Context) error
}

func compile(g *graph.Graph, o exec.Options) (*program, error) {
	p := &program{
		name: o.Name, g: g, profile: o.Profile, tracer: o.Trace,
		values: make([]*value, g.NumValues()),
		inputs: map[string]*exec.Tensor{}, outputs: map[string]*exec.Tensor{}, vars: map[string]*exec.Tensor{},
	}
	if err := exec.CheckRanks(g, o.Comm); err != nil {
		return nil, fmt.Errorf("program %q: %w", o.Name, err)
	}
	for i, live := range g.Live() {
		if !live {
			continue
		}
		n := g.Nodes()[i]
		s, err := p.compileNode(n, o)
		if err != nil {
			return nil, p.errorAt(n, err)
		}
		p.steps = append(p.steps, s)
	}
	for _, out := range g.Outputs() {
		p.outputs[out.Name] = exec.NewTensor(g.Type(out.ID))
	}
	p.stats.Nodes, p.stats.Steps = len(p.steps), len(p.steps)
	if o.Profile {
		p.stats.Ops = map[string]exec.OpStats{}
	}
	return p, nil
}

// errorAt says where an error happened: program, scope, op.
func (p *program) errorAt(n graph.Node, err error) error {
	return exec.ErrorAt(p.name, n.Scope, n.Op.String(), err)
}

// travel numbers the next collective.
func (p *program) travel(kind collective.Kind, label string) *exec.Travel {
	p.travels++
	return &exec.Travel{Number: p.travels - 1, Kind: kind, Label: label}
}

func (p *program) compileNode(n graph.Node, o exec.Options) (step, error) {
	in, out := make([]*value, len(n.In)), make([]*value, len(n.Out))
	for k, id := range n.In {
		in[k] = p.values[id]
	}
	for k, id := range n.Out {
		out[k] = newValue(p.g.Type(id))
		p.values[id] = out[k]
		p.stats.PeakBytes += int64(len(out[k].f)+len(out[k].i)) * 8
	}
	s := step{node: n, kind: reflect.TypeOf(n.Op).Name(), flops: flops(n.Op, in, out)}
	switch op := n.Op.(type) {
	case graph.Leaf:
		t, err := p.leaf(op, o.Vars)
		if err != nil {
			return s, err
		}
		s.run = func(context.Context) error { out[0].load(t); return nil }
	case graph.AllReduce:
		s.travel = p.travel(collective.AllReduce, op.Label)
		s.run = allReduce(op, o.Comm, in, out)
	case graph.ReduceScatter:
		s.travel = p.travel(collective.ReduceScatter, op.Label)
		s.run = reduceScatter(op, o.Comm, in[0], out[0])
	case graph.AllGather:
		s.travel = p.travel(collective.AllGather, op.Label)
		s.run = allGather(op, o.Comm, in[0], out[0])
	case graph.Part:
		_, rank := exec.Ranks(o.Comm)
		s.run = part(rank, in[0], out[0])
	case graph.Placed:
		_, rank := exec.Ranks(o.Comm)
		s.run = placed(rank, in[0], out[0])
	default:
		kernel, err := kernelOf(op)
		if err != nil {
			return s, err
		}
		s.run = func(context.Context) error {
			err := kernel(in, out)
			for _, y := range out {
				y.round()
			}
			return err
		}
	}
	return s, nil
}

// flops of a convolution or a matrix product, a multiply-add counted as two;
// padding counts as if it were there.
func flops(op graph.Op, in, out []*value) int64 {
	var terms int
	switch op := op.(type) {
	case graph.MatMul:
		inner := in[0].typ.Shape.At(1)
		if op.TransX {
			inner = in[0].typ.Shape.At(0)
		}
		terms = len(out[0].f) * inner
	case graph.Conv2D: // each element of y meets all taps of one weight
		terms = len(out[0].f) * in[1].typ.Shape.With(0, 1).Len()
	case graph.Conv2DGradX:
		terms = len(in[1].f) * in[0].typ.Shape.With(0, 1).Len()
	case graph.Conv2DGradW:
		terms = len(in[1].f) * out[0].typ.Shape.With(0, 1).Len()
	}
	return 2 * int64(terms)
}

// leaf is the memory that a leaf is read from.
func (p *program) leaf(op graph.Leaf, in exec.Vars) (*exec.Tensor, error) {
	if op.Kind == graph.Input {
		t := exec.NewTensor(op.Type)
		p.inputs[op.Name] = t
		return t, nil
	}
	set, ok := in.(*exec.HostVars)
	if !ok {
		if in == nil {
			return nil, errors.New("the graph has variables, and none were given")
		}
		return nil, fmt.Errorf("the variables belong to another backend (%T)", in)
	}
	t := set.Tensor(op.Name)
	switch {
	case t == nil:
		return nil, fmt.Errorf("the variable is not set; want %v", op.Type)
	case t.Type != op.Type:
		return nil, fmt.Errorf("the variable is %v, want %v", t.Type, op.Type)
	}
	p.vars[op.Name] = t
	p.stats.VarBytes += int64(op.Type.Bytes())
	return t, nil
}

// Depth is 1: a run is over before the next begins.
func (p *program) Depth() int { return 1 }

func (p *program) Input(name string) *exec.Tensor  { return p.inputs[name] }
func (p *program) Output(name string) *exec.Tensor { return p.outputs[name] }

func (p *program) Launch(ctx context.Context) error {
	switch {
	case p.closed:
		return fmt.Errorf("program %q: launched after Close", p.name)
	case p.running != nil:
		return fmt.Errorf("program %q: launched again before Wait", p.name)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.running = make(chan error, 1)
	go func() { p.running <- p.run(ctx) }()
	return nil
}

// Wait waits for the run. If ctx ends first, the run is cancelled.
func (p *program) Wait(ctx context.Context) error {
	if p.running == nil {
		return fmt.Errorf("program %q: Wait without Launch", p.name)
	}
	stop := context.AfterFunc(ctx, p.cancel)
	err := <-p.running
	stop()
	p.cancel()
	p.running = nil
	return err
}

// run computes every node, then the outputs, then the assignments.
func (p *program) run(ctx context.Context) error {
	p.trace = nil
	if p.tracer != nil {
		p.trace = p.tracer()
	}
	start := time.Now()
	for _, s := range p.steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("program %q: %w", p.name, context.Cause(ctx))
		}
		began := time.Now()
		if err := s.run(ctx); err != nil {
			return p.errorAt(s.node, err)
		}
		p.count(s, began, time.Since(began))
	}
	for _, out := range p.g.Outputs() {
		p.values[out.ID].store(p.outputs[out.Name])
	}
	for _, a := range p.g.Assigns() {
		leaf := p.g.Nodes()[p.g.NodeOf(a.Var)].Op.(graph.Leaf)
		p.values[a.Value].store(p.vars[leaf.Name])
	}
	p.stats.Runs++
	p.stats.RunTime += time.Since(start)
	return nil
}

func (p *program) count(s step, began time.Time, took time.Duration) {
	if p.trace != nil {
		p.tell(s, exec.Event{Kind: s.kind, Name: s.node.Op.String(), Scope: s.node.Scope, Start: began, Time: took, Flops: s.flops, Travel: s.travel})
	}
	if s.travel != nil {
		p.stats.CommWait += took
	}
	if p.profile {
		o := p.stats.Ops[s.kind]
		o.Add(took, s.flops)
		p.stats.Ops[s.kind] = o
	}
}

// tell traces a step; a collective is waited for where it starts.
func (p *program) tell(s step, e exec.Event) {
	in, out := p.bytes(s.node.In), p.bytes(s.node.Out)
	e.Bytes = in + out
	p.trace(e)
	if t := s.travel; t != nil {
		p.trace(exec.Event{Kind: exec.Collective, Name: t.Label, Start: e.Start, Time: e.Time, Bytes: max(in, out), Travel: t})
	}
}

// bytes is the size of values together.
func (p *program) bytes(ids []graph.ID) (n int64) {
	for _, id := range ids {
		n += int64(p.g.Type(id).Bytes())
	}
	return n
}

// Stats copies the statistics; between runs only.
func (p *program) Stats() exec.Stats {
	s := p.stats
	if s.Ops != nil {
		s.Ops = maps.Clone(s.Ops)
	}
	return s
}

// Dump writes the live graph, which is the program.
func (p *program) Dump(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "program %q, ref, %d nodes\n", p.name, len(p.steps)); err != nil {
		return err
	}
	return p.g.Dump(w)
}

// Close ends a run under way.
func (p *program) Close() error {
	p.closed = true
	if p.running == nil {
		return nil
	}
	p.cancel()
	<-p.running //nolint:errcheck // that the run was cut off is no error of Close
	p.running = nil
	return nil
}
