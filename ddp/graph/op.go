package graph

// Op is one operation of the closed set. Its dynamic type is a comparable
// struct: two Ops that are == compute the same function.
type Op interface {
	// Infer checks the types of the inputs and gives those of the outputs. Its
	// errors say what was expected; the Builder adds where.
	Infer(in []Type) ([]Type, error)

	// VJP builds the cotangents of the inputs from those of the outputs: with
	// y = f(x) and ȳ = ∂T/∂y, it returns x̄ = (∂y/∂x)ᵀ ȳ for each input. In
	// both lists 0 stands for zero. At least one dout is not 0.
	VJP(b *Builder, c Call, dout []ID) []ID

	// String names the op and all its parameters: "conv2d{stride 2x2 pad 1,1,1,1}".
	String() string
}

// ID names a value: one output of one node. 0 is no value.
type ID int32

// Call is an application of an Op: the IDs of its inputs and outputs.
type Call struct {
	In, Out []ID
}

// Node is one application of an Op. Its outputs are Out, consecutive IDs.
type Node struct {
	Op    Op
	In    []ID
	Out   []ID
	Scope string // where in the model it was first made: "energy/conv3"
}
