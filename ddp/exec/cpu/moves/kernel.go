package moves

import (
	"fmt"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// Kernel does one step.
type Kernel interface{ Run() error }

// New makes the kernel of an op, from the places of its operands to those of its
// results. There is none for an op of another room, or for images of other
// numbers than F32 and F64.
func New(jobs *threads.Jobs, op any, in, out []array.Place) (Kernel, error) {
	switch op := op.(type) {
	case plan.Copy:
		return copyBytes{out[0].Bytes(), in[0].Bytes()}, nil
	case plan.Fill:
		return newFill(op.Value, out[0]), nil
	case graph.Iota:
		return newIota(op, out[0]), nil
	case graph.Transpose:
		return newTranspose(jobs, op, in[0], out[0]), nil
	case graph.Slice:
		return newSlice(jobs, op, in[0], out[0]), nil
	case graph.Pad:
		return newPad(jobs, op, in[0], out[0]), nil
	case graph.Concat:
		return newConcat(jobs, op, in, out[0]), nil
	case graph.Gather:
		return newGather(jobs, rowTable(in[0], in[1]), in[0], out[0]), nil
	case graph.ScatterAdd:
		return newScatter(jobs, rowTable(out[0], in[1]), in[0], out[0]), nil
	case graph.PlaneGather:
		return newGather(jobs, pixelTable(in[0], in[1]), in[0], out[0]), nil
	case graph.PlaneScatter:
		return newScatter(jobs, pixelTable(out[0], in[1]), in[0], out[0]), nil
	case graph.Draw:
		return newDraw(jobs, op, in[0], out[0]), nil
	case graph.Cast:
		return newCast(jobs, in[0], out[0]), nil
	}
	switch { // what is left is images
	case len(in) == 0:
	case in[0].DType == graph.F32:
		return newImage(jobs, mixFloat32, op, in, out)
	case in[0].DType == graph.F64:
		return newImage(jobs, mix[float64], op, in, out)
	default:
		return nil, fmt.Errorf("no kernel for %v", in[0].DType)
	}
	return nil, fmt.Errorf("no kernel for %T", op)
}
