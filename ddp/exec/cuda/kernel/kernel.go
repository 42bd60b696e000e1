package kernel

import (
	"fmt"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// Block is the number of threads in every block.
const Block = 256

// Options are what NVRTC must be told besides the architecture. Products and sums are
// not contracted, so what a group computes does not depend on what else is in it;
// kernels that want fused multiply-adds say so.
//
// Of the head's functions a text uses some: those that it does not are no warning (177).
func Options() []string { return []string{"--fmad=false", "--std=c++17", "--diag-suppress=177"} }

// Launch is one kernel of a step with its arguments.
type Launch struct {
	// Entry is the kernel's name, a function of Source: equal names are equal kernels.
	Entry string
	// Source is the kernel's text in CUDA C, complete.
	Source string
	// Grid is the number of blocks, of Block threads each. Shared memory is of fixed
	// size, in the text.
	Grid int
	// Counters is how many bytes of counters the step's kernels up to this one need.
	Counters int
	args     params
	text     parts
}

// Memory is where a step finds its arrays: addresses on the device.
type Memory struct {
	// Value is the address of a value of the plan. That of memory (arena, bucket,
	// input, output, variable) is a multiple of 256; View says where in it.
	Value func(v int) uint64
	// Scratch is that of the step's scratch memory, a multiple of plan.Align.
	Scratch uint64
	// Counters is that of the Counters of the step's last kernel, which are the step's
	// own and zero before the first run: each run leaves them so.
	Counters uint64
	// Fault is that of the step's own FaultBytes, if it has indices (see Indexed): zero
	// before each run, and the host reads it after.
	Fault uint64
}

// Args is the kernel's argument, a struct to be passed by value.
func (l *Launch) Args(m Memory) []byte { return l.args.bytes(m) }

// Counters is how many bytes of counters the kernels of a step need: zero before the
// first run, and no other step's.
func Counters(list []Launch) int {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].Counters
}

// UsesFault says whether the kernel may write to Memory.Fault.
func (l *Launch) UsesFault() bool {
	for _, f := range l.args.fields {
		if f.kind == faultField {
			return true
		}
	}
	return false
}

// Scratch is the scratch memory of step i in bytes: the device sets it before
// Allocate. It is 0 for steps without kernels.
func Scratch(p *plan.Plan, i int) int {
	m, err := maker(p, i)
	if err != nil {
		return 0
	}
	launches, err := m.step()
	if err != nil || len(launches) == 0 {
		return 0
	}
	return m.scratch
}

// For is the kernels of step i of an allocated plan, to be launched in order. There
// are none where the step has nothing to do: all its results are empty. Start and Wait
// have no kernels, which is an error.
func For(p *plan.Plan, i int) ([]Launch, error) {
	m, err := maker(p, i)
	if err != nil {
		return nil, err
	}
	return m.step()
}

// making is the kernels of one step under construction.
type making struct {
	p        *plan.Plan
	i        int
	s        *plan.Step
	scratch  int  // bytes so far
	counters int  // of blocks, so far
	wide     bool // 64-bit indices, though 32 would do
	crowded  bool // several tiles a block, though there are few
}

func maker(p *plan.Plan, i int) (*making, error) {
	m := &making{p: p, i: i, s: &p.Steps[i]}
	for _, v := range m.s.Out {
		if p.Values[v].IsConst {
			return nil, fmt.Errorf("step %d, %v: its result %d is a constant", i, m.s.Op, v)
		}
	}
	return m, nil
}

// step makes the kernels.
func (m *making) step() ([]Launch, error) {
	switch m.s.Op.(type) {
	case plan.Start, plan.Wait:
		return nil, fmt.Errorf("step %d: there is no kernel for %v", m.i, m.s.Op)
	}
	some := false
	for _, v := range m.s.Out {
		some = some || m.value(v).Dims.Len() > 0
	}
	if !some {
		return nil, nil
	}
	switch op := m.s.Op.(type) {
	case *plan.Fused:
		return m.fused(op, m.operands(m.s.In), m.operands(m.s.Out))
	case plan.Copy:
		return m.convert()
	case plan.Fill:
		return m.fill(op.Value)
	case graph.Cast:
		return m.convert()
	case graph.Slice:
		return m.slice(op)
	case graph.Concat:
		return m.concat(op)
	case graph.Pad:
		return m.pad(op)
	case graph.Transpose:
		return m.transpose(op)
	case graph.Draw:
		return m.draw(op)
	case graph.Iota:
		return m.iota(op)
	case graph.Gather, graph.ScatterAdd, graph.PlaneGather, graph.PlaneScatter:
		return m.indexed(m.s.Op.(graph.Op))
	case graph.SumPool2D, graph.SumUnpool2D, graph.MaxPool2D, graph.Upsample2D, graph.Upsample2DT:
		return m.pooled(m.s.Op.(graph.Op))
	case graph.MatMul:
		return m.matmul(op)
	case graph.Conv2D:
		return m.conv2D(op)
	case graph.Conv2DGradX:
		return m.conv2DGradX(op)
	case graph.Conv2DGradW:
		return m.conv2DGradW(op)
	case Columns:
		return m.columns(op)
	case Few:
		return m.few(op)
	}
	return nil, fmt.Errorf("step %d: there is no kernel for %v", m.i, m.s.Op)
}

func (m *making) value(v int) *plan.Value { return &m.p.Values[v] }

// take is the offset of so many more bytes of scratch memory.
func (m *making) take(bytes int) int {
	at := m.scratch
	m.scratch += (bytes + plan.Align - 1) / plan.Align * plan.Align
	return at
}

// count is the number of the first of so many more counters.
func (m *making) count(n int) int {
	at := m.counters
	m.counters += n
	return at
}

// operand is an array that a kernel reads or writes.
type operand struct {
	value   int
	dtype   graph.DType
	dims    graph.Shape
	aligned bool // at a multiple of 16 bytes
}

func (m *making) operands(vs []int) []operand {
	ops := make([]operand, len(vs))
	for i, v := range vs {
		_, _, off := m.p.View(v)
		ops[i] = operand{v, m.value(v).DType, m.value(v).Dims, off%16 == 0}
	}
	return ops
}
