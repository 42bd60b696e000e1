//go:build !noasm

package vec

import (
	"golang.org/x/sys/cpu"

	"ebtrain/ddp/graph"
)

// Kernels in assembly for blocks of float32: see vec_amd64.s and exp_amd64.s.

//go:noescape
func addVV8(d, x, y *float32, n int)

//go:noescape
func subVV8(d, x, y *float32, n int)

//go:noescape
func mulVV8(d, x, y *float32, n int)

//go:noescape
func divVV8(d, x, y *float32, n int)

//go:noescape
func maxVV8(d, x, y *float32, n int)

//go:noescape
func minVV8(d, x, y *float32, n int)

//go:noescape
func gtVV8(d, x, y *float32, n int)

//go:noescape
func eqVV8(d, x, y *float32, n int)

//go:noescape
func addVS8(d, x *float32, s float32, n int)

//go:noescape
func subSV8(d, x *float32, s float32, n int)

//go:noescape
func mulVS8(d, x *float32, s float32, n int)

//go:noescape
func divVS8(d, x *float32, s float32, n int)

//go:noescape
func divSV8(d, x *float32, s float32, n int)

//go:noescape
func maxVS8(d, x *float32, s float32, n int)

//go:noescape
func minVS8(d, x *float32, s float32, n int)

//go:noescape
func gtVS8(d, x *float32, s float32, n int)

//go:noescape
func gtSV8(d, x *float32, s float32, n int)

//go:noescape
func eqVS8(d, x *float32, s float32, n int)

//go:noescape
func leakyRelu8(d, x *float32, s float32, n int)

//go:noescape
func leakyStep8(d, x *float32, s float32, n int)

//go:noescape
func neg8(d, x *float32, s float32, n int)

//go:noescape
func abs8(d, x *float32, s float32, n int)

//go:noescape
func sqrt8(d, x *float32, s float32, n int)

//go:noescape
func select8(d, c, x, y *float32, n int)

//go:noescape
func sum16(x *float32, n int) float64

//go:noescape
func sumColumns16(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumColumns4(acc *float64, x *float32, rows, stride int)

//go:noescape
func sum64(x *float32, n int) float64

//go:noescape
func sumColumns64(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumColumns32(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumSquareColumns64(acc *float64, x *float32, rows, stride int)

//go:noescape
func sumSquareColumns32(acc *float64, x *float32, rows, stride int)

//go:noescape
func addRow32(acc *float64, x *float32, n int)

//go:noescape
func exp8(d, x *float32, s float32, n int)

//go:noescape
func elu8(d, x *float32, s float32, n int)

//go:noescape
func eluD8(d, x *float32, s float32, n int)

//go:noescape
func eluDD8(d, x *float32, s float32, n int)

//go:noescape
func sigmoid8(d, x *float32, s float32, n int)

//go:noescape
func tanh8(d, x *float32, s float32, n int)

//go:noescape
func log8(d, x *float32, s float32, n int)

//go:noescape
func softplus8(d, x *float32, s float32, n int)

// wide8 does the first elements of a block eight at a time and the rest by the
// plain loop.
func wide8(fast func(d, x, y *float32, n int), rest Binary[float32]) Binary[float32] {
	return func(d, x, y []float32) {
		n := len(d) &^ 7
		if n > 0 {
			fast(&d[0], &x[0], &y[0], n)
		}
		rest(d[n:], x[n:len(d)], y[n:len(d)])
	}
}

func wide8s(fast func(d, x *float32, s float32, n int), rest BinaryNumber[float32]) BinaryNumber[float32] {
	return func(d, x []float32, s float32) {
		n := len(d) &^ 7
		if n > 0 {
			fast(&d[0], &x[0], s, n)
		}
		rest(d[n:], x[n:len(d)], s)
	}
}

// whole8 does all of a block by a function that takes any number of elements but 0.
func whole8(fast func(d, x *float32, s float32, n int)) Unary[float32] {
	return func(d, x []float32, a float32) {
		if len(d) > 0 {
			fast(&d[0], &x[:len(d)][0], a, len(d))
		}
	}
}

// binaryFloat32 is binaryOf for float32.
func binaryFloat32(fn graph.BinaryFn) Pair[float32] {
	p := binaryOf[float32](fn)
	if !cpu.X86.HasAVX2 {
		return p
	}
	switch fn {
	case graph.Add:
		return Pair[float32]{wide8(addVV8, p.VV), wide8s(addVS8, p.VS), wide8s(addVS8, p.SV)}
	case graph.Sub:
		minus := func(d, x *float32, s float32, n int) { addVS8(d, x, -s, n) }
		return Pair[float32]{wide8(subVV8, p.VV), wide8s(minus, p.VS), wide8s(subSV8, p.SV)}
	case graph.Mul:
		return Pair[float32]{wide8(mulVV8, p.VV), wide8s(mulVS8, p.VS), wide8s(mulVS8, p.SV)}
	case graph.Div:
		return Pair[float32]{wide8(divVV8, p.VV), wide8s(divVS8, p.VS), wide8s(divSV8, p.SV)}
	case graph.Max:
		return Pair[float32]{wide8(maxVV8, p.VV), wide8s(maxVS8, p.VS), wide8s(maxVS8, p.SV)}
	case graph.Min:
		return Pair[float32]{wide8(minVV8, p.VV), wide8s(minVS8, p.VS), wide8s(minVS8, p.SV)}
	case graph.Greater:
		return Pair[float32]{wide8(gtVV8, p.VV), wide8s(gtVS8, p.VS), wide8s(gtSV8, p.SV)}
	case graph.Equal:
		return Pair[float32]{wide8(eqVV8, p.VV), wide8s(eqVS8, p.VS), wide8s(eqVS8, p.SV)}
	}
	return p
}

// unaryFloat32 is unaryOf for float32.
func unaryFloat32(fn graph.UnaryFn) Unary[float32] {
	rest := unaryOf[float32](fn)
	if !cpu.X86.HasAVX2 {
		return rest
	}
	fixed := func(fast func(d, x *float32, s float32, n int), s float32) Unary[float32] {
		f := wide8s(fast, BinaryNumber[float32](rest))
		return func(d, x []float32, _ float32) { f(d, x, s) }
	}
	free := func(fast func(d, x *float32, s float32, n int)) Unary[float32] {
		return Unary[float32](wide8s(fast, BinaryNumber[float32](rest)))
	}
	switch fn {
	case graph.Neg:
		return free(neg8)
	case graph.Abs:
		return free(abs8)
	case graph.Sqrt:
		return free(sqrt8)
	case graph.Scale:
		return free(mulVS8)
	case graph.Shift:
		return free(addVS8)
	case graph.LeakyRelu:
		return free(leakyRelu8)
	case graph.LeakyStep:
		return free(leakyStep8)
	case graph.Relu:
		return fixed(maxVS8, 0)
	case graph.Step:
		return fixed(gtVS8, 0)
	case graph.Recip:
		return fixed(divSV8, 1)
	case graph.Square:
		f := wide8(mulVV8, mulVV[float32])
		return func(d, x []float32, _ float32) { f(d, x, x) }
	}
	if f := exponential(fn); f != nil && cpu.X86.HasFMA {
		return whole8(f)
	}
	return rest
}

// exponential is a function of exp_amd64.s or log_amd64.s, right to 3 ulp; nil
// for others.
func exponential(fn graph.UnaryFn) func(d, x *float32, s float32, n int) {
	switch fn {
	case graph.Exp:
		return exp8
	case graph.Log:
		return log8
	case graph.Elu:
		return elu8
	case graph.EluD:
		return eluD8
	case graph.EluDD:
		return eluDD8
	case graph.Sigmoid:
		return sigmoid8
	case graph.Tanh:
		return tanh8
	case graph.Softplus:
		return softplus8
	}
	return nil
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

// sumsFloat32 is the sums of float32 in float64.
func sumsFloat32() Sums[float32, float64] {
	if !cpu.X86.HasAVX2 {
		return sumsOf[float32, float64]()
	}
	return Sums[float32, float64]{sumFloat32, sumColumnsFloat32}
}

// squaresFloat32 is the sums of the squares of float32 in float64.
func squaresFloat32() Sums[float32, float64] {
	if !cpu.X86.HasAVX2 {
		return squaresOf[float32, float64]()
	}
	return Sums[float32, float64]{sumSquares[float32, float64], sumSquareColumnsFloat32}
}

// sumFloat32 is the sum of x, whatever its length.
func sumFloat32(x []float32) (s float64) {
	if n := len(x) &^ 63; cpu.X86.HasAVX512F && n > 0 {
		s = sum64(&x[0], n)
		x = x[n:]
	}
	if n := len(x) &^ 15; n > 0 {
		s += sum16(&x[0], n)
		x = x[n:]
	}
	return s + sum[float32, float64](x)
}

// sumColumnsFloat32 adds the rows of x, of the length of acc, to acc.
func sumColumnsFloat32(acc []float64, x []float32) {
	cols := len(acc)
	rows := len(x) / max(cols, 1)
	if rows == 0 {
		return
	}
	c := 0
	if cpu.X86.HasAVX512F && rows == 1 && cols >= 32 {
		c = cols &^ 31
		addRow32(&acc[0], &x[0], c)
	}
	for ; cpu.X86.HasAVX512F && c+64 <= cols; c += 64 {
		sumColumns64(&acc[c], &x[c], rows, cols)
	}
	for ; cpu.X86.HasAVX512F && c+32 <= cols; c += 32 {
		sumColumns32(&acc[c], &x[c], rows, cols)
	}
	for ; c+16 <= cols; c += 16 {
		sumColumns16(&acc[c], &x[c], rows, cols)
	}
	for ; c+4 <= cols; c += 4 {
		sumColumns4(&acc[c], &x[c], rows, cols)
	}
	for ; c < cols; c++ {
		for i := c; i < rows*cols; i += cols {
			acc[c] += float64(x[i])
		}
	}
}

// sumSquareColumnsFloat32 adds the squares of the rows of x, of the length of acc, to
// acc.
func sumSquareColumnsFloat32(acc []float64, x []float32) {
	cols := len(acc)
	rows := len(x) / max(cols, 1)
	if rows == 0 {
		return
	}
	c := 0
	for ; cpu.X86.HasAVX512F && c+64 <= cols; c += 64 {
		sumSquareColumns64(&acc[c], &x[c], rows, cols)
	}
	for ; cpu.X86.HasAVX512F && c+32 <= cols; c += 32 {
		sumSquareColumns32(&acc[c], &x[c], rows, cols)
	}
	for ; c < cols; c++ {
		for i := c; i < rows*cols; i += cols {
			acc[c] += float64(x[i]) * float64(x[i])
		}
	}
}
