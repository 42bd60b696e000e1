package plan

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// Align is the alignment in bytes of every region of memory.
const Align = 64

// Options are what a plan depends on besides the graph.
type Options struct {
	Name string
	// World is the number of ranks; with 0 or 1 an AllReduce is the identity.
	World int
	// WidenBF16 says that the device's convolutions, products, pools and
	// scatters do not take bf16: they are computed in f32.
	WidenBF16 bool
	// Remat trades time for memory: what costs little to compute is computed
	// again where that lowers the peak.
	Remat bool
	// Deterministic decides nothing that changes a bit by what else is in the
	// graph: a reduction is a step of its own, since a device may add in an order
	// that depends on the group; sums are not taken apart by levels; and an
	// AllReduce is a boundary in a world of one too.
	Deterministic bool
}

// Plan is a compiled graph.
type Plan struct {
	Name   string
	Values []Value
	Steps  []Step
	// Inputs, Outputs and Vars are the values outside the arena.
	Inputs, Outputs, Vars []External
	// ArenaBytes and BucketBytes are the sizes of the two planned memories,
	// known after Allocate.
	ArenaBytes, BucketBytes int
	// LiveNodes is the number of nodes of the graph that the plan computes.
	LiveNodes int

	assigns []assign
}

// External is a named value whose memory is not the plan's.
type External struct {
	Name  string
	Type  graph.Type // logical
	Value int
}

// Space is a memory.
type Space uint8

const (
	Arena  Space = iota // intermediate values
	Bucket              // what collectives reduce in place
	Input               // host inputs
	Output              // host outputs
	Var                 // variables
)

func (s Space) String() string {
	return [...]string{"arena", "bucket", "input", "output", "var"}[s]
}

// Value is a dense row-major array of the physical extents Dims.
type Value struct {
	DType graph.DType
	Dims  graph.Shape
	// Last says that Dims are those of an image in channels-last order.
	Last bool
	// IsConst values are the number Const everywhere and have no memory.
	IsConst bool
	Const   float64

	// Root is the value whose memory this one shares, itself if none; Off is
	// where in it, in bytes.
	Root, Off int
	// Place, of a root: Index numbers the input, output or variable; Offset is
	// in bytes, in the arena or bucket memory.
	Space  Space
	Index  int
	Offset int

	parent int // the value whose contents this one shows, -1 if none
	bcast  int // the value that this one repeats, -1 if none
}

// Bytes is the size of the value.
func (v *Value) Bytes() int { return v.Dims.Len() * v.DType.Size() }

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

// assign is a variable (a value) and the value that it takes.
type assign struct{ dst, src int }

// node is an op before scheduling.
type node struct {
	op      fmt.Stringer
	in, out []int
	index   int // of the node of the graph that it stems from
	scope   string
	late    bool // belongs into the group of its readers
}

// New compiles the live part of g up to the schedule. The device then sets the
// Scratch of steps and calls Allocate.
func New(g *graph.Graph, o Options) (*Plan, error) {
	l := lower(g, o)
	if l.err != nil {
		return nil, l.err
	}
	l.buckets()
	l.moments()
	if !o.Deterministic {
		l.split()
	}
	l.linear()
	l.again()
	l.derive()
	units := l.fuse()
	p := l.plan
	p.Steps = l.schedule(units)
	if o.Remat {
		p.remat()
	}
	return p, nil
}

// View is where a value lies: its root's place, and the offset in it.
func (p *Plan) View(v int) (space Space, index, offset int) {
	r := &p.Values[p.Values[v].Root]
	return r.Space, r.Index, r.Offset + p.Values[v].Off
}

// Traffic is the number of bytes that step i reads and writes, each value
// counted once. What a collective moves is not counted.
func (p *Plan) Traffic(i int) (bytes int64) {
	s := &p.Steps[i]
	switch s.Op.(type) {
	case Start, Wait:
		return 0
	}
	for _, vs := range [...][]int{s.In, s.Out} {
		for _, v := range vs {
			bytes += int64(p.Values[v].Bytes())
		}
	}
	return bytes
}
