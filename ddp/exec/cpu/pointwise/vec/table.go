package vec

import (
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/graph"
)

// Table is the loops for one element type: T is computed in, sums are of type A.
type Table[T, A array.Number] struct {
	DType   graph.DType                  // the element type that is a T in memory
	Unary   func(graph.UnaryFn) Unary[T] // nil for integers
	Binary  func(graph.BinaryFn) Pair[T]
	Select  Select[T]
	Sums    Sums[T, A]
	Squares Sums[T, A] // of squares
}

// Float32 is the loops for float32, whose sums are float64.
func Float32() Table[float32, float64] {
	return Table[float32, float64]{graph.F32, unaryFloat32, binaryFloat32, selectFloat32(), sumsFloat32(), squaresFloat32()}
}

// Float64 is the loops for float64, in which BF16 is computed too.
func Float64() Table[float64, float64] {
	return Table[float64, float64]{graph.F64, unaryOf[float64], binaryOf[float64], selectVVV[float64], sumsOf[float64, float64](), squaresOf[float64, float64]()}
}

// Int64 is the loops for all integers.
func Int64() Table[int64, int64] {
	return Table[int64, int64]{graph.I64, nil, binaryOf[int64], selectVVV[int64], sumsOf[int64, int64](), squaresOf[int64, int64]()}
}
