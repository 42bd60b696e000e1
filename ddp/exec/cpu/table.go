package cpu

import (
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/graph"
)

// table is the loops for one element type: T is computed in, sums are of type A.
type table[T, A array.Number] struct {
	unary  func(graph.UnaryFn) vec1[T] // nil for integers
	binary func(graph.BinaryFn) pair[T]
	choose vec3[T]
	sums   adders[T, A]
	plain  graph.DType // the element type that is a T in memory
}

// adders are the sums of a block: all of it, or its columns; and the same of
// squares.
type adders[T, A array.Number] struct {
	all, allSquares         func(x []T) A
	columns, columnsSquares func(acc []A, x []T)
}

func plainAdders[T, A array.Number]() adders[T, A] {
	return adders[T, A]{sumAll[T, A], squareAll[T, A], sumColumns[T, A], squareColumns[T, A]}
}

// ofSquares are adders that square.
func (a adders[T, A]) ofSquares() adders[T, A] {
	return adders[T, A]{all: a.allSquares, columns: a.columnsSquares}
}

func table32() table[float32, float64] {
	return table[float32, float64]{unaries32, pairs32, select32(), sums32(), graph.F32}
}

func table64() table[float64, float64] {
	return table[float64, float64]{unaries[float64], pairs[float64], selectVVV[float64], plainAdders[float64, float64](), graph.F64}
}

func tableInt() table[int64, int64] {
	return table[int64, int64]{nil, pairs[int64], selectVVV[int64], plainAdders[int64, int64](), graph.I64}
}
