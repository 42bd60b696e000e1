package plan

import (
	"slices"

	"ebtrain/ddp/graph"
)

// Align is the alignment in bytes of every region of memory.
const Align = 64

// Options are what a plan depends on besides the graph.
type Options struct {
	Name string
	// World is the number of ranks; with 0 or 1 collectives are the identity. Rank
	// is this one's number: plans of ranks differ by nothing else.
	World, Rank int
	// WidenBF16 says that the device's convolutions, products, pools and
	// scatters do not take bf16: they are computed in f32.
	WidenBF16 bool
	// Remat trades time for memory: what costs little to compute is computed
	// again where that lowers the peak.
	Remat bool
	// Deterministic decides nothing that changes a bit by what else is in the
	// graph: a reduction is a step of its own, since a device may add in an order
	// that depends on the group; sums are not taken apart by levels, and follow from
	// no other sums; and an AllReduce is a boundary in a world of one too, and passes
	// that look for sums do not look through it.
	Deterministic bool
	// WeightsLast puts the weights of convolutions into channels-last order, as images
	// always are: (K,C,R,S) lies as (K,R,S,C). So do their gradients, the variables
	// that they are computed from, and what those are assigned: moments, averages.
	// Variables that are images do so too. Value.Last says which.
	WeightsLast bool
	// VarLast says whether a variable lies in channels-last order, where that is fixed,
	// because a program that shares it was compiled before; nil if none is. Only with
	// WeightsLast.
	VarLast func(name string) (last, fixed bool)
	// BF16Images keeps images between steps in bfloat16, half the memory and traffic,
	// for devices whose steps on images take them. Arithmetic, variables, sums, statistics
	// and what travels stay float32: loads and stores of fused steps convert (see
	// Fused), and Transpose and Copy do where their values differ in type. A convolution
	// multiplies images of either type, in bfloat16 or better, and adds in float32; its
	// weights are rounded to bfloat16 once for all that read them where its image is. A
	// program that is Deterministic does without: what is rounded, and who reads it before
	// it is, depends on the rest of the graph.
	BF16Images bool
	// Apart keeps arrays of the arena of at most so many bytes, and scratch memory,
	// to themselves: steps on them then depend on each other by what they compute
	// alone (see Deps), for a device that runs small steps side by side. Without it
	// small arrays share memory most.
	Apart int
	// Join makes one convolution of several by the same weights that do not depend on
	// each other, if the images that they read together, and those that they make, have so
	// many elements at most; 0 is none. What lies together lives together, so with Remat
	// less memory is saved. A program that is Deterministic does without: who is joined
	// depends on the rest of the graph.
	Join int
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
	o       Options
}

// External is a named value whose memory is not the plan's. Type is what its user
// sees; a variable whose Value is Last lies in channels-last order, and who sets and
// gets it permutes it.
type External struct {
	Name  string
	Type  graph.Type // logical
	Value int
}

// Named is the entry of values, which lie beside list, of what is called name; zero if
// nothing is.
func Named[T any](list []External, values []T, name string) (entry T) {
	for i, e := range list {
		if e.Name == name {
			return values[i]
		}
	}
	return entry
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

// New compiles the live part of g. The device then sets the Scratch of steps
// and calls Allocate.
func New(g *graph.Graph, o Options) *Plan {
	d := lower(g, o)
	for _, p := range passes(o) {
		p.run(d)
	}
	p := d.Plan
	p.Steps = dropJoins(schedule(p, fuse(d)))
	if o.BF16Images && !o.Deterministic {
		p.narrow()
	}
	if o.Remat {
		rematerialise(p)
	}
	p.assign()
	return p
}

// pass is a change of the nodes.
type pass struct {
	name string
	run  func(*dag)
}

// passes are those between lowering and fusion, in order.
func passes(o Options) []pass {
	list := []pass{{"join", join}, {"buckets", buckets}, {"moments", moments}, {"split", split}, {"linear", linear}, {"unshare", unshare}, {"recompute", recompute}, {"derive", derive}}
	without := map[string]bool{"join": o.Join == 0 || o.Deterministic, "split": o.Deterministic, "linear": o.Deterministic}
	list = slices.DeleteFunc(list, func(p pass) bool { return without[p.name] })
	return list
}

// View is where a value lies: its root's place, and the offset in it.
func (p *Plan) View(v int) (space Space, index, offset int) {
	r := &p.Values[p.Values[v].Root]
	return r.Space, r.Index, r.Offset + p.Values[v].Off
}

// Traffic is the number of bytes that step i reads and writes, each value
// counted once. What a collective moves is not counted.
func (p *Plan) Traffic(i int) int64 {
	s := &p.Steps[i]
	switch s.Op.(type) {
	case Start, Wait:
		return 0
	}
	return p.bytes(s.In) + p.bytes(s.Out)
}

// bytes is the size of values.
func (p *Plan) bytes(values []int) (n int64) {
	for _, v := range values {
		n += int64(p.Values[v].Bytes())
	}
	return n
}
