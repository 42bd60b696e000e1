package plan

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// machine runs an allocated plan as slowly and plainly as can be: on memory that
// is laid out as the plan says, fused steps point by point, all other steps by the
// reference, each as a graph of its own. Memory that nothing has written, that is
// scratch, or that a collective has in hand holds NaNs.
type machine struct {
	p      *Plan
	world  int // ranks that all compute the same
	memory map[region][]byte
	steps  []func() error
	flight map[int][]byte // what a collective reduces, by number
}

func newMachine(p *Plan, world int) (*machine, error) {
	m := &machine{p: p, world: world, memory: map[region][]byte{}, flight: map[int][]byte{}}
	for at, n := range map[region]int{{Arena, 0}: p.ArenaBytes, {Bucket, 0}: p.BucketBytes} {
		m.memory[at] = make([]byte, n)
		spoil(m.memory[at])
	}
	for _, list := range [][]External{p.Inputs, p.Outputs, p.Vars} {
		for i, e := range list {
			m.memory[region{p.Values[e.Value].Space, i}] = make([]byte, e.Type.Bytes())
		}
	}
	for i := range p.Steps {
		run, err := m.compile(&p.Steps[i])
		if err != nil {
			return nil, fmt.Errorf("step %d, %v: %w", i, p.Steps[i].Op, err)
		}
		m.steps = append(m.steps, run)
	}
	return m, nil
}

// spoil fills memory with NaNs of all types.
func spoil(mem []byte) {
	for i := range mem {
		mem[i] = 0xff
	}
}

func (m *machine) bytes(v int) []byte {
	space, index, off := m.p.View(v)
	n := m.p.Values[v].Bytes()
	if n == 0 {
		return nil
	}
	return m.memory[region{space, index}][off : off+n]
}

func (m *machine) typ(v int) graph.Type {
	return graph.Type{DType: m.p.Values[v].DType, Shape: m.p.Values[v].Dims}
}

// get copies a value.
func (m *machine) get(v int) *exec.Tensor {
	t := exec.NewTensor(m.typ(v))
	copy(t.Bytes(), m.bytes(v))
	return t
}

func (m *machine) put(v int, t *exec.Tensor) { copy(m.bytes(v), t.Bytes()) }

func (m *machine) compile(s *Step) (func() error, error) {
	switch op := s.Op.(type) {
	case *Fused:
		return func() error { m.fused(s, op); return nil }, nil
	case Copy:
		return func() error {
			in, out := m.get(s.In[0]), exec.NewTensor(m.typ(s.Out[0]))
			for i := range out.Type.Shape.Len() {
				out.SetAt(i, in.At(i))
			}
			m.put(s.Out[0], out)
			return nil
		}, nil
	case Fill:
		return func() error {
			out := exec.NewTensor(m.typ(s.Out[0]))
			for i := range out.Type.Shape.Len() {
				out.SetAt(i, op.Value)
			}
			m.put(s.Out[0], out)
			return nil
		}, nil
	case Start:
		return func() error {
			mem := m.bytes(op.Bucket)
			m.flight[op.Number] = append([]byte(nil), mem...)
			spoil(mem)
			return nil
		}, nil
	case Wait:
		return func() error {
			mem, ok := m.flight[op.Number]
			if !ok {
				return fmt.Errorf("collective %d is not under way", op.Number)
			}
			root := m.p.Values[s.Out[0]].Root
			copy(m.bytes(root), mem)
			if op.Op == collective.Sum {
				t := m.get(root)
				for i := range t.Type.Shape.Len() {
					t.SetAt(i, t.At(i)*float64(m.world))
				}
				m.put(root, t)
			}
			return nil
		}, nil
	}
	return m.single(s, s.Op.(graph.Op))
}

// single is a step of one op as a program of the reference. Ops on images know no
// channels-last order: they get, and give, others.
func (m *machine) single(s *Step, op graph.Op) (func() error, error) {
	image := isImageOp(op)
	var b graph.Builder
	in := make([]graph.ID, len(s.In))
	for k, v := range s.In {
		in[k] = b.Input(fmt.Sprint(k), m.typ(v))
		if image && m.typ(v).DType == graph.BF16 {
			in[k] = b.Cast(in[k], graph.F32)
		}
		if image && m.p.Values[v].Last {
			in[k] = b.Transpose(in[k], 0, 3, 1, 2)
		}
	}
	for k, y := range b.Apply(op, in...) {
		if image && m.p.Values[s.Out[k]].Last {
			y = b.Transpose(y, 0, 2, 3, 1)
		}
		if dt := m.typ(s.Out[k]).DType; dt != b.Type(y).DType && (image || s.Kind() == KindTranspose) {
			y = b.Cast(y, dt)
		}
		b.Output(fmt.Sprint(k), y)
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	p, err := ref.New().Compile(g, exec.Options{Name: "step"})
	if err != nil {
		return nil, err
	}
	for k, v := range s.Out {
		if got := p.Output(fmt.Sprint(k)).Type; got != m.typ(v) {
			return nil, fmt.Errorf("result %d is %v, want %v", k, got, m.typ(v))
		}
	}
	return func() error {
		for k, v := range s.In {
			if t := p.Input(fmt.Sprint(k)); t != nil {
				copy(t.Bytes(), m.bytes(v))
			}
		}
		if s.Scratch > 0 {
			spoil(m.memory[region{Arena, 0}][s.ScratchAt : s.ScratchAt+s.Scratch])
		}
		if err := exec.Run(context.Background(), p); err != nil {
			return err
		}
		for k, v := range s.Out {
			m.put(v, p.Output(fmt.Sprint(k)))
		}
		return nil
	}, nil
}

func isImageOp(op graph.Op) bool {
	switch op.(type) {
	case graph.Conv2D, graph.Conv2DGradX, graph.Conv2DGradW, graph.SumPool2D, graph.SumUnpool2D, graph.MaxPool2D,
		graph.PlaneGather, graph.PlaneScatter, graph.Upsample2D, graph.Upsample2DT:
		return true
	}
	return false
}

// fused runs a group point by point, in a random order, as a device may that computes many
// at once; a point reads all it needs before it writes.
func (m *machine) fused(s *Step, f *Fused) {
	n := f.Dims.Len()
	round := func(v float64) float64 {
		t := exec.NewTensor(graph.T(f.DType, 1))
		t.SetAt(0, v)
		return t.At(0)
	}
	sums := make([][]float64, len(f.Sums)) // by reduction, of each point
	for k := range sums {
		sums[k] = make([]float64, n)
	}
	reg := make([]float64, f.Registers())
	for _, point := range rand.New(rand.NewPCG(uint64(n), 3)).Perm(n) {
		for k, a := range f.Loads {
			reg[k] = round(m.element(s.In[k], a.Offset(point)))
		}
		for k, c := range f.Consts {
			reg[len(f.Loads)+k] = round(c)
		}
		for k, c := range f.Code {
			reg[len(f.Loads)+len(f.Consts)+k] = round(eval(c, reg))
		}
		for k, r := range f.Stores {
			m.setElement(s.Out[k], point, reg[r])
		}
		for k, r := range f.Sums {
			sums[k][point] = reg[r.Reg]
		}
	}
	if s.Scratch > 0 {
		spoil(m.memory[region{Arena, 0}][s.ScratchAt : s.ScratchAt+s.Scratch])
	}
	for k, r := range f.Sums {
		m.reduce(s.Out[len(f.Stores)+k], r, sums[k])
	}
}

func eval(c Instr, reg []float64) float64 {
	switch op := c.Op.(type) {
	case graph.Unary:
		return EvalUnary(op.Fn, op.A(), reg[c.X])
	case graph.Binary:
		return EvalBinary(op.Fn, reg[c.X], reg[c.Y])
	}
	if reg[c.X] != 0 {
		return reg[c.Y]
	}
	return reg[c.Z]
}

// reduce combines the points that go into each element of v.
func (m *machine) reduce(v int, r Reduction, x []float64) {
	out := exec.NewTensor(m.typ(v))
	parts := make([][]float64, out.Type.Shape.Len())
	for point, y := range x {
		parts[r.Offset(point)] = append(parts[r.Offset(point)], y)
	}
	for i, part := range parts {
		sum, most := 0.0, math.Inf(-1)
		for _, y := range part {
			sum, most = sum+y, max(most, y)
		}
		switch {
		case r.Centred:
			mean := sum / float64(len(part))
			sum = 0
			for _, y := range part {
				sum += (y - mean) * (y - mean)
			}
		case r.Fn == graph.ReduceMax:
			sum = most
		}
		out.SetAt(i, sum)
	}
	m.put(v, out)
}

// view is a value as a tensor of its own memory, element by element.
func (m *machine) element(v, i int) float64 {
	t := exec.NewTensor(graph.T(m.p.Values[v].DType, 1))
	size := t.Type.DType.Size()
	copy(t.Bytes(), m.bytes(v)[i*size:(i+1)*size])
	return t.At(0)
}

func (m *machine) setElement(v, i int, x float64) {
	t := exec.NewTensor(graph.T(m.p.Values[v].DType, 1))
	t.SetAt(0, x)
	copy(m.bytes(v)[i*t.Type.DType.Size():], t.Bytes())
}

// external is the memory of an input, output or variable.
func (m *machine) external(e External) []byte {
	return m.memory[region{m.p.Values[e.Value].Space, m.p.Values[e.Value].Index}]
}
