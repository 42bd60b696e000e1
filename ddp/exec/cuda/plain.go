package cuda

import (
	"encoding/json"
	"errors"
	"fmt"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// plainKernel is a problem done by kernels of package kernel.
type plainKernel struct {
	b       *Backend
	name    string
	list    []kernel.Launch
	scratch int
}

// plain makes kernels for a problem of any types.
func (b *Backend) plain(q linalg.Problem) (linalg.Candidate, error) {
	p, err := planOf(q)
	if err != nil {
		return nil, err
	}
	return b.plainOf(q.String(), p)
}

// few makes kernels for a convolution of images of few channels; nil where there are none.
func (b *Backend) few(q linalg.Problem) (linalg.Candidate, error) {
	c, ok := q.(linalg.Conv)
	if !ok || b.dev.Info().Major < fewCapability || c.T.Math != linalg.BF16 && (c.T.A != graph.BF16 || c.T.B != graph.BF16) {
		return nil, nil // weights of float32 would be rounded
	}
	p, err := planOf(q)
	if err != nil || !kernel.FitsFew(p, 0) {
		return nil, err
	}
	p.Steps[0].Op = kernel.Few{Op: p.Steps[0].Op.(graph.Op)}
	return b.plainOf(q.String(), p)
}

// fewCapability is the compute capability of the first devices that multiply bfloat16.
const fewCapability = 8

// plainOf makes the kernels of a plan of one step.
func (b *Backend) plainOf(name string, p *plan.Plan) (*plainKernel, error) {
	k := &plainKernel{b: b, name: name, scratch: kernel.Scratch(p, 0)}
	var err error
	if k.list, err = kernel.For(p, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n := kernel.Counters(k.list); n > 0 {
		return nil, fmt.Errorf("%s: its kernels need %d bytes of counters, and a problem's have none", name, n)
	}
	sources := map[string]string{}
	for _, l := range k.list {
		sources[l.Entry] = l.Source
	}
	return k, b.load(sources)
}

func (k *plainKernel) String() string         { return "of ours" }
func (k *plainKernel) Workspace() int64       { return int64(k.scratch) }
func (k *plainKernel) Saved() json.RawMessage { return json.RawMessage("null") }
func (k *plainKernel) Close() error           { return nil }

func (k *plainKernel) Enqueue(s *driver.Stream, o linalg.Operands, work driver.Ptr) error {
	at := []driver.Ptr{o.A, o.B, o.Dst}
	return k.b.kernels(k.list, kernel.Memory{Value: func(v int) uint64 { return uint64(at[v]) }, Scratch: uint64(work)}).enqueue(s)
}

// planOf is a plan of one step that does a problem: values 0 and 1 make 2.
func planOf(q linalg.Problem) (*plan.Plan, error) {
	t := q.Types()
	var op fmt.Stringer
	var a, b, dst graph.Shape
	switch q := q.(type) {
	case linalg.Product:
		if q.Batch != 1 {
			return nil, errors.New("there is no plain kernel for a batch of products")
		}
		op = graph.MatMul{TransX: q.TransA, TransY: q.TransB}
		a, b, dst = transposed(q.M, q.K, q.TransA), transposed(q.K, q.N, q.TransB), graph.D(q.M, q.N)
	case linalg.Conv:
		x, w, y := graph.D(q.N, q.H, q.W, q.C), graph.D(q.O, q.KH, q.KW, q.C/q.Groups), graph.D(q.N, q.OH, q.OW, q.O)
		switch q.Op {
		case linalg.Forward:
			op, a, b, dst = graph.Conv2D{Conv: q.Conv}, x, w, y
		case linalg.GradX:
			op, a, b, dst = graph.Conv2DGradX{Conv: q.Conv, H: q.H, W: q.W}, w, y, x
		default:
			op, a, b, dst = graph.Conv2DGradW{Conv: q.Conv}, x, y, w
		}
	default:
		return nil, fmt.Errorf("there is no plain kernel for a %T", q)
	}
	return planned(op, []plan.Value{{DType: t.A, Dims: a}, {DType: t.B, Dims: b}}, plan.Value{DType: t.Dst, Dims: dst}), nil
}

func transposed(rows, columns int, trans bool) graph.Shape {
	if trans {
		return graph.D(columns, rows)
	}
	return graph.D(rows, columns)
}

// planned is a plan of one step whose values are memory of their own.
func planned(op fmt.Stringer, in []plan.Value, out plan.Value) *plan.Plan {
	p := &plan.Plan{Values: append(in, out)}
	step := plan.Step{Op: op, Out: []int{len(in)}}
	for v := range p.Values {
		p.Values[v].Root, p.Values[v].Space, p.Values[v].Index = v, plan.Input, v
		p.Values[v].Last = p.Values[v].Dims.Rank() == 4
	}
	for v := range in {
		step.In = append(step.In, v)
	}
	p.Steps = []plan.Step{step}
	return p
}

// cast converts n elements on a stream.
func (b *Backend) cast(s *driver.Stream, dst driver.Ptr, to graph.DType, src driver.Ptr, from graph.DType, n int64) error {
	key, shape := castKey{to, from, n}, graph.D(int(n))
	return b.moved(key, s, dst, src, func() *plan.Plan {
		return planned(plan.Copy{}, []plan.Value{{DType: from, Dims: shape}}, plan.Value{DType: to, Dims: shape})
	})
}

// castKey is a conversion of so many elements.
type castKey struct {
	to, from graph.DType
	n        int64
}

func (c castKey) String() string { return "cast" }

// move makes columns of an image, or an image of columns, on a stream.
func (b *Backend) move(s *driver.Stream, c linalg.Columns, dst, src driver.Ptr) error {
	return b.moved(c, s, dst, src, func() *plan.Plan {
		to, from := graph.D(c.N, c.I, c.J, c.Width), graph.D(c.N, c.H, c.W, c.C)
		if c.Back {
			to, from = from, to
		}
		op := kernel.Columns{Window: c.Window, First: c.First, Back: c.Back}
		return planned(op, []plan.Value{{DType: c.From, Dims: from}}, plan.Value{DType: c.To, Dims: to})
	})
}

// moved does a plan of one step with one operand on a stream. Its kernels are made when
// they are first wanted, and kept by key.
func (b *Backend) moved(key fmt.Stringer, s *driver.Stream, dst, src driver.Ptr, make func() *plan.Plan) error {
	b.mu.Lock()
	k := b.moves[key]
	b.mu.Unlock()
	if k == nil {
		var err error
		if k, err = b.plainOf(key.String(), make()); err != nil {
			return err
		}
		b.mu.Lock()
		b.moves[key] = k
		b.mu.Unlock()
	}
	at := []driver.Ptr{src, dst}
	return b.kernels(k.list, kernel.Memory{Value: func(v int) uint64 { return uint64(at[v]) }}).enqueue(s)
}
