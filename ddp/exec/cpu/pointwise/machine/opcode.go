package machine

import "ebtrain/ddp/graph"

// opcode numbers the handlers. The assembly gives each its place in their table,
// in this order.
type opcode uint8

const (
	opNext opcode = iota
	opStore
	opPrefetch
	opLoad // of an array; the next is that of a number, and so on
	opLoadNum
	opAdd
	opAddNum
	opSub
	opSubNum
	opRsub
	opRsubNum
	opMul
	opMulNum
	opDiv
	opDivNum
	opRdiv
	opRdivNum
	opMax
	opMaxNum
	opMin
	opMinNum
	opGreater
	opGreaterNum
	opLess
	opLessNum
	opEqual
	opEqualNum
	opLeakyRelu
	opLeakyStep
	opNeg
	opAbs
	opSqrt
	opSquare
	opSlope
	opSum
	opSumSquares
	opExp
	opElu
	opEluD
	opEluDD
	opSigmoid
	opTanh
	opSoftplus
	opLog
	numOpcodes
)

// binary is acc = fn(acc, operand), and acc = fn(operand, acc) if there is such
// an instruction.
func binary(fn graph.BinaryFn) (acc, turned opcode) {
	switch fn {
	case graph.Add:
		return opAdd, opAdd
	case graph.Sub:
		return opSub, opRsub
	case graph.Mul:
		return opMul, opMul
	case graph.Div:
		return opDiv, opRdiv
	case graph.Max:
		return opMax, 0 // of two zeros or NaNs the order decides
	case graph.Min:
		return opMin, 0
	case graph.Greater:
		return opGreater, opLess
	case graph.Equal:
		return opEqual, opEqual
	}
	return 0, 0
}

// unary is acc = fn(acc), and its number.
func unary(op graph.Unary) (fn opcode, num float32) {
	switch op.Fn {
	case graph.Neg:
		return opNeg, 0
	case graph.Abs:
		return opAbs, 0
	case graph.Sqrt:
		return opSqrt, 0
	case graph.Square:
		return opSquare, 0
	case graph.Step:
		return opGreaterNum, 0
	case graph.Relu:
		return opMaxNum, 0
	case graph.LeakyRelu:
		return opLeakyRelu, float32(op.A())
	case graph.LeakyStep:
		return opLeakyStep, float32(op.A())
	case graph.Recip:
		return opRdivNum, 1
	case graph.Scale:
		return opMulNum, float32(op.A())
	case graph.Shift:
		return opAddNum, float32(op.A())
	}
	return exponentials[op.Fn], float32(op.A())
}

// exponentials are functions made of the exponential, and the logarithm.
var exponentials = map[graph.UnaryFn]opcode{
	graph.Exp: opExp, graph.Elu: opElu, graph.EluD: opEluD, graph.EluDD: opEluDD,
	graph.Sigmoid: opSigmoid, graph.Tanh: opTanh, graph.Softplus: opSoftplus, graph.Log: opLog,
}
