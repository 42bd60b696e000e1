package plan

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// Step is one unit of execution.
type Step struct {
	// Op says what the step computes; its axes are physical. It is one of the
	// ops of graph, or Fused, Copy, Fill, Start, Wait.
	Op fmt.Stringer
	// In and Out number Values. For Start, In are the bucket's parts; for Wait,
	// Out are.
	In, Out []int
	Scope   string
	// Scratch is the number of bytes of scratch memory that the device asks
	// for, set between New and Allocate; ScratchAt is its offset in the arena.
	Scratch, ScratchAt int
}

// Kind is what a device has a kernel for.
type Kind string

// The kinds of steps: those of this package, and the ops of graph that are
// steps.
const (
	KindFused Kind = "Fused"
	KindCopy  Kind = "Copy"
	KindFill  Kind = "Fill"
	KindStart Kind = "Start"
	KindWait  Kind = "Wait"

	KindCast      Kind = "Cast"
	KindConcat    Kind = "Concat"
	KindDraw      Kind = "Draw"
	KindIota      Kind = "Iota"
	KindPad       Kind = "Pad"
	KindSlice     Kind = "Slice"
	KindTranspose Kind = "Transpose"

	KindGather       Kind = "Gather"
	KindPlaneGather  Kind = "PlaneGather"
	KindPlaneScatter Kind = "PlaneScatter"
	KindScatterAdd   Kind = "ScatterAdd"

	KindConv2D      Kind = "Conv2D"
	KindConv2DGradW Kind = "Conv2DGradW"
	KindConv2DGradX Kind = "Conv2DGradX"
	KindMatMul      Kind = "MatMul"

	KindMaxPool2D   Kind = "MaxPool2D"
	KindSumPool2D   Kind = "SumPool2D"
	KindSumUnpool2D Kind = "SumUnpool2D"
	KindUpsample2D  Kind = "Upsample2D"
	KindUpsample2DT Kind = "Upsample2DT"
)

// Kind is the kind of the step.
func (s *Step) Kind() Kind {
	switch s.Op.(type) {
	case *Fused:
		return KindFused
	case Copy:
		return KindCopy
	case Fill:
		return KindFill
	case Start:
		return KindStart
	case Wait:
		return KindWait
	case graph.Cast:
		return KindCast
	case graph.Concat:
		return KindConcat
	case graph.Draw:
		return KindDraw
	case graph.Iota:
		return KindIota
	case graph.Pad:
		return KindPad
	case graph.Slice:
		return KindSlice
	case graph.Transpose:
		return KindTranspose
	case graph.Gather:
		return KindGather
	case graph.PlaneGather:
		return KindPlaneGather
	case graph.PlaneScatter:
		return KindPlaneScatter
	case graph.ScatterAdd:
		return KindScatterAdd
	case graph.Conv2D:
		return KindConv2D
	case graph.Conv2DGradW:
		return KindConv2DGradW
	case graph.Conv2DGradX:
		return KindConv2DGradX
	case graph.MatMul:
		return KindMatMul
	case graph.MaxPool2D:
		return KindMaxPool2D
	case graph.SumPool2D:
		return KindSumPool2D
	case graph.SumUnpool2D:
		return KindSumUnpool2D
	case graph.Upsample2D:
		return KindUpsample2D
	case graph.Upsample2DT:
		return KindUpsample2DT
	}
	panic(fmt.Sprintf("plan: %v is no step", s.Op))
}

// Copy copies its input.
type Copy struct{}

func (Copy) String() string { return "copy" }

// Fill sets every element to a number.
type Fill struct{ Value float64 }

func (f Fill) String() string { return fmt.Sprintf("fill %v", f.Value) }

// Start starts an AllReduce of the elements of Bucket.
type Start struct {
	graph.AllReduce
	Bucket int // a value
	Number int // among the collectives of the plan, in order of the graph
}

func (s Start) String() string { return "start " + s.AllReduce.String() }

// Wait waits for the AllReduce of that number.
type Wait struct {
	graph.AllReduce
	Number int
}

func (w Wait) String() string { return "wait " + w.AllReduce.String() }
