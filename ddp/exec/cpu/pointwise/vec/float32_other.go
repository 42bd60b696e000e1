//go:build !amd64 || noasm

package vec

import "ebtrain/ddp/graph"

// The loops for float32, where there is no assembly.

func binaryFloat32(fn graph.BinaryFn) Pair[float32] { return binaryOf[float32](fn) }
func unaryFloat32(fn graph.UnaryFn) Unary[float32]  { return unaryOf[float32](fn) }
func selectFloat32() Select[float32]                { return selectVVV[float32] }
func sumsFloat32() Sums[float32, float64]           { return sumsOf[float32, float64]() }
func squaresFloat32() Sums[float32, float64]        { return squaresOf[float32, float64]() }
