package kernel

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// FaultBytes is the memory in which the kernels of a step tell of an index out of range:
// three i64, 1 + the step, the index's position, its value. Who tells is the thread of the
// first such index; the step goes on with 0 in place of what is not there. Each step has
// memory of its own, as steps run side by side.
const FaultBytes = 24

// Indexed are the steps of a plan that may tell of one.
func Indexed(p *plan.Plan) (steps []int) {
	for i := range p.Steps {
		switch p.Steps[i].Op.(type) {
		case graph.Gather, graph.ScatterAdd, graph.PlaneGather, graph.PlaneScatter:
			steps = append(steps, i)
		}
	}
	return steps
}

// FaultOf is the error that the kernels of a run have told of, nil if there is none: of
// several steps, each with its FaultBytes, the first does, whichever came first.
func FaultOf(p *plan.Plan, mem []byte) error {
	for own := range slices.Chunk(mem, FaultBytes) {
		if err := faultOf(p, own); err != nil {
			return err
		}
	}
	return nil
}

// faultOf is what a step has told.
func faultOf(p *plan.Plan, mem []byte) error {
	word := func(i int) int { return int(int64(binary.LittleEndian.Uint64(mem[8*i:]))) }
	step, at, value := word(0)-1, word(1), word(2)
	if step < 0 {
		return nil
	}
	if step >= len(p.Steps) {
		return fmt.Errorf("the memory of faults names step %d of %d", step, len(p.Steps))
	}
	s := &p.Steps[step]
	x, y := p.Values[s.In[0]].Dims, p.Values[s.Out[0]].Dims
	var what string
	switch s.Op.(type) {
	case graph.Gather:
		what = fmt.Sprintf("index %d at %d is outside a table of %d rows", value, at, x.At(0))
	case graph.ScatterAdd:
		what = fmt.Sprintf("index %d at %d is outside a table of %d rows", value, at, y.At(0))
	default:
		if _, ok := s.Op.(graph.PlaneGather); ok {
			y = x
		}
		what = fmt.Sprintf("index %d at %d is outside a plane of %d pixels", value, logical(p.Values[s.In[1]].Dims, at), y.At(1)*y.At(2))
	}
	if s.Scope != "" {
		return fmt.Errorf("%s: %s: %s", s.Scope, s.Op, what)
	}
	return fmt.Errorf("%s: %s", s.Op, what)
}

// logical is the number in (N, C, H, W) order of element e of dims (N, H, W, C).
func logical(dims graph.Shape, e int) int {
	c, pixels := dims.At(3), dims.At(1)*dims.At(2)
	pixel := e / c
	return (pixel/pixels*c+e%c)*pixels + pixel%pixels
}
