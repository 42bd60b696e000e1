package cpu

import "ebtrain/ddp/graph"

// tileFn numbers the handlers, in the order of tile_amd64.s.
type tileFn uint8

const (
	tileNext tileFn = iota
	tileLoad
	tileStore
	tileAdd
	tileSub
	tileRsub
	tileMul
	tileDiv
	tileRdiv
	tileMax
	tileMin
	tileGt
	tileLt
	tileEq
	tileLoadS
	tileAddS
	tileSubS
	tileRsubS
	tileMulS
	tileDivS
	tileRdivS
	tileMaxS
	tileMinS
	tileGtS
	tileLtS
	tileEqS
	tileLeakyRelu
	tileLeakyStep
	tileNeg
	tileAbs
	tileSqrt
	tileSquare
	tileSlope
	tileSum
	tileSquares
	tilePrefetch
	numTileFn
)

// numbered is fn with a number for operand.
func numbered(fn tileFn) tileFn {
	if fn == tileLoad {
		return tileLoadS
	}
	return fn + tileAddS - tileAdd
}

// tileBinary is acc = fn(acc, operand), and acc = fn(operand, acc) if there is
// such an instruction.
func tileBinary(fn graph.BinaryFn) (acc, turned tileFn) {
	switch fn {
	case graph.Add:
		return tileAdd, tileAdd
	case graph.Sub:
		return tileSub, tileRsub
	case graph.Mul:
		return tileMul, tileMul
	case graph.Div:
		return tileDiv, tileRdiv
	case graph.Max:
		return tileMax, 0 // of two zeros or NaNs the order decides
	case graph.Min:
		return tileMin, 0
	case graph.Greater:
		return tileGt, tileLt
	case graph.Equal:
		return tileEq, tileEq
	}
	return 0, 0
}

// tileUnary is acc = fn(acc), and its number.
func tileUnary(op graph.Unary) (fn tileFn, num float32) {
	switch op.Fn {
	case graph.Neg:
		return tileNeg, 0
	case graph.Abs:
		return tileAbs, 0
	case graph.Sqrt:
		return tileSqrt, 0
	case graph.Square:
		return tileSquare, 0
	case graph.Step:
		return tileGtS, 0
	case graph.Relu:
		return tileMaxS, 0
	case graph.LeakyRelu:
		return tileLeakyRelu, float32(op.A())
	case graph.LeakyStep:
		return tileLeakyStep, float32(op.A())
	case graph.Recip:
		return tileRdivS, 1
	case graph.Scale:
		return tileMulS, float32(op.A())
	case graph.Shift:
		return tileAddS, float32(op.A())
	}
	return 0, 0
}
