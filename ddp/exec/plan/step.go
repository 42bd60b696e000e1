package plan

import (
	"fmt"
	"reflect"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Step is one unit of execution.
type Step struct {
	// Op says what the step computes; its axes are physical. It is one of the
	// ops of graph, or Fused, Copy, Fill, Start, Wait.
	Op fmt.Stringer
	// In and Out number Values. For Start, In are what lies in the bucket; for
	// Wait, Out is what comes back in it.
	In, Out []int
	Scope   string
	// Scratch is the number of bytes of scratch memory that the device asks
	// for, set between New and Allocate; ScratchAt is its offset in the arena.
	Scratch, ScratchAt int
}

// Kind is what a device has kernels for.
type Kind string

// The kinds of steps: those of this package, and the ops of graph that are
// steps.
const (
	KindFused, KindCopy, KindFill, KindStart, KindWait Kind = "Fused", "Copy", "Fill", "Start", "Wait"

	KindConv2D, KindConv2DGradX, KindConv2DGradW, KindMatMul Kind = "Conv2D", "Conv2DGradX", "Conv2DGradW", "MatMul"

	KindCast, KindConcat, KindPad, KindSlice, KindTranspose Kind = "Cast", "Concat", "Pad", "Slice", "Transpose"

	KindGather, KindScatterAdd, KindPlaneGather, KindPlaneScatter Kind = "Gather", "ScatterAdd", "PlaneGather", "PlaneScatter"

	KindMaxPool2D, KindSumPool2D, KindSumUnpool2D Kind = "MaxPool2D", "SumPool2D", "SumUnpool2D"
	KindUpsample2D, KindUpsample2DT               Kind = "Upsample2D", "Upsample2DT"

	KindDraw, KindIota Kind = "Draw", "Iota"
)

// kinds are the kinds by op.
var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[*Fused](): KindFused, reflect.TypeFor[Copy](): KindCopy, reflect.TypeFor[Fill](): KindFill,
	reflect.TypeFor[Start](): KindStart, reflect.TypeFor[Wait](): KindWait,
	reflect.TypeFor[graph.Conv2D](): KindConv2D, reflect.TypeFor[graph.Conv2DGradX](): KindConv2DGradX,
	reflect.TypeFor[graph.Conv2DGradW](): KindConv2DGradW, reflect.TypeFor[graph.MatMul](): KindMatMul,
	reflect.TypeFor[graph.Cast](): KindCast, reflect.TypeFor[graph.Concat](): KindConcat, reflect.TypeFor[graph.Pad](): KindPad,
	reflect.TypeFor[graph.Slice](): KindSlice, reflect.TypeFor[graph.Transpose](): KindTranspose,
	reflect.TypeFor[graph.Gather](): KindGather, reflect.TypeFor[graph.ScatterAdd](): KindScatterAdd,
	reflect.TypeFor[graph.PlaneGather](): KindPlaneGather, reflect.TypeFor[graph.PlaneScatter](): KindPlaneScatter,
	reflect.TypeFor[graph.MaxPool2D](): KindMaxPool2D, reflect.TypeFor[graph.SumPool2D](): KindSumPool2D,
	reflect.TypeFor[graph.SumUnpool2D](): KindSumUnpool2D, reflect.TypeFor[graph.Upsample2D](): KindUpsample2D,
	reflect.TypeFor[graph.Upsample2DT](): KindUpsample2DT, reflect.TypeFor[graph.Draw](): KindDraw, reflect.TypeFor[graph.Iota](): KindIota,
}

// Kind is the kind of the step.
func (s *Step) Kind() Kind {
	k, ok := kinds[reflect.TypeOf(s.Op)]
	if !ok {
		panic(fmt.Sprintf("plan: %v is no step", s.Op))
	}
	return k
}

// Travel is the collective that the step starts or waits for, as a trace tells it; nil
// for other steps.
func (s *Step) Travel() *exec.Travel {
	switch op := s.Op.(type) {
	case Start:
		return &exec.Travel{Number: op.Number, Kind: op.Kind, Label: op.Label}
	case Wait:
		return &exec.Travel{Number: op.Number, Kind: op.Kind, Label: op.Label}
	}
	return nil
}

// Copy copies its input.
type Copy struct{}

func (Copy) String() string { return "copy" }

// Fill sets every element to a number.
type Fill struct{ Value float64 }

func (f Fill) String() string { return fmt.Sprintf("fill %v", f.Value) }

// Collective is what travels between ranks.
type Collective struct {
	Kind  collective.Kind // AllReduce, ReduceScatter or AllGather
	Op    collective.Op   // of the first two
	Label string
}

// collectiveOf is the collective that a node is, and whether it is one.
func collectiveOf(op fmt.Stringer) (c Collective, is bool) {
	switch op := op.(type) {
	case graph.AllReduce:
		return Collective{collective.AllReduce, op.Op, op.Label}, true
	case graph.ReduceScatter:
		return Collective{collective.ReduceScatter, op.Op, op.Label}, true
	case graph.AllGather:
		return Collective{Kind: collective.AllGather, Label: op.Label}, true
	}
	return c, false
}

func (c Collective) String() string {
	switch c.Kind {
	case collective.ReduceScatter:
		return fmt.Sprintf("reducescatter{%s %q}", c.Op, c.Label)
	case collective.AllGather:
		return fmt.Sprintf("allgather{%q}", c.Label)
	}
	return fmt.Sprintf("allreduce{%s %q}", c.Op, c.Label)
}

// Start starts a collective on the elements of Bucket.
type Start struct {
	Collective
	Bucket int // a value
	Number int // among the collectives of the plan, in order of the graph
}

func (s Start) String() string { return "start " + s.Collective.String() }

// Wait waits for the collective of that number.
type Wait struct {
	Collective
	Number int
}

func (w Wait) String() string { return "wait " + w.Collective.String() }
