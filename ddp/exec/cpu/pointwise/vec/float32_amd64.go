//go:build !noasm

package vec

import (
	"golang.org/x/sys/cpu"

	"ebtrain/ddp/graph"
)

// kernel numbers the loops in assembly. kernels_amd64.s gives each its place in
// their table, in this order.
type kernel int

const (
	addVV8 kernel = iota
	subVV8
	mulVV8
	divVV8
	maxVV8
	minVV8
	gtVV8
	eqVV8
	addVS8
	subVS8
	subSV8
	mulVS8
	divVS8
	divSV8
	maxVS8
	minVS8
	gtVS8
	gtSV8
	eqVS8
	leakyRelu8
	leakyStep8
	neg8
	abs8
	sqrt8
	exp8
	elu8
	eluD8
	eluDD8
	sigmoid8
	tanh8
	softplus8
	log8
	numKernels
)

// run does kernel k on n numbers from d, x and y on.
//
//go:noescape
func run(k kernel, d, x, y *float32, s float32, n int)

//go:noescape
func select8(d, c, x, y *float32, n int)

// vv does the first numbers of a block eight at a time and the rest by the plain
// loop.
func (k kernel) vv(rest Binary[float32]) Binary[float32] {
	return func(d, x, y []float32) {
		n := len(d) &^ 7
		if n > 0 {
			run(k, &d[0], &x[0], &y[0], 0, n)
		}
		rest(d[n:], x[n:len(d)], y[n:len(d)])
	}
}

// vs is vv for a block and a number.
func (k kernel) vs(rest BinaryNumber[float32]) BinaryNumber[float32] {
	return func(d, x []float32, s float32) {
		n := len(d) &^ 7
		if n > 0 {
			run(k, &d[0], &x[0], nil, s, n)
		}
		rest(d[n:], x[n:len(d)], s)
	}
}

// all does all of a block, by a kernel that takes any number of elements but 0.
func (k kernel) all(d, x []float32, s float32) {
	if len(d) > 0 {
		run(k, &d[0], &x[:len(d)][0], nil, s, len(d))
	}
}

// binaryKernels are the kernels of two arrays, an array and a number, and a number
// and an array.
var binaryKernels = [graph.NumBinaryFn]struct{ vv, vs, sv kernel }{
	graph.Add:     {addVV8, addVS8, addVS8},
	graph.Sub:     {subVV8, subVS8, subSV8},
	graph.Mul:     {mulVV8, mulVS8, mulVS8},
	graph.Div:     {divVV8, divVS8, divSV8},
	graph.Max:     {maxVV8, maxVS8, maxVS8},
	graph.Min:     {minVV8, minVS8, minVS8},
	graph.Greater: {gtVV8, gtVS8, gtSV8},
	graph.Equal:   {eqVV8, eqVS8, eqVS8},
}

// binaryFloat32 is binaryOf for float32.
func binaryFloat32(fn graph.BinaryFn) Pair[float32] {
	p := binaryOf[float32](fn)
	if !cpu.X86.HasAVX2 {
		return p
	}
	k := binaryKernels[fn]
	return Pair[float32]{k.vv.vv(p.VV), k.vs.vs(p.VS), k.sv.vs(p.SV)}
}

// exponentials are functions of exp_avx2_amd64.h and log_avx2_amd64.h, right to 3 ulp.
var exponentials = map[graph.UnaryFn]kernel{
	graph.Exp: exp8, graph.Elu: elu8, graph.EluD: eluD8, graph.EluDD: eluDD8,
	graph.Sigmoid: sigmoid8, graph.Tanh: tanh8, graph.Softplus: softplus8, graph.Log: log8,
}

// withParameter are the kernels of functions whose parameter is their number, or
// that have none.
var withParameter = map[graph.UnaryFn]kernel{
	graph.Neg: neg8, graph.Abs: abs8, graph.Sqrt: sqrt8, graph.Scale: mulVS8, graph.Shift: addVS8,
	graph.LeakyRelu: leakyRelu8, graph.LeakyStep: leakyStep8,
}

// unaryFloat32 is unaryOf for float32.
func unaryFloat32(fn graph.UnaryFn) Unary[float32] {
	rest := unaryOf[float32](fn)
	if !cpu.X86.HasAVX2 {
		return rest
	}
	by := func(k kernel, s float32) Unary[float32] {
		f := k.vs(BinaryNumber[float32](rest))
		return func(d, x []float32, _ float32) { f(d, x, s) }
	}
	switch fn {
	case graph.Relu:
		return by(maxVS8, 0)
	case graph.Step:
		return by(gtVS8, 0)
	case graph.Recip:
		return by(divSV8, 1)
	case graph.Square:
		f := mulVV8.vv(mulVV[float32])
		return func(d, x []float32, _ float32) { f(d, x, x) }
	}
	if k, ok := withParameter[fn]; ok {
		return Unary[float32](k.vs(BinaryNumber[float32](rest)))
	}
	if k, ok := exponentials[fn]; ok && cpu.X86.HasFMA {
		return k.all
	}
	return rest
}

// selectFloat32 is selectVVV for float32.
func selectFloat32() Select[float32] {
	if !cpu.X86.HasAVX2 {
		return selectVVV[float32]
	}
	return func(d, c, x, y []float32) {
		n := len(d) &^ 7
		if n > 0 {
			select8(&d[0], &c[0], &x[0], &y[0], n)
		}
		selectVVV(d[n:], c[n:len(d)], x[n:len(d)], y[n:len(d)])
	}
}
