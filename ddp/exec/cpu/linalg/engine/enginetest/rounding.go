package enginetest

import (
	"math"
	"unsafe"

	"ebtrain/ddp/exec/cpu/linalg/engine"
)

// Rounding is how far an engine's results of a convolution are from the exact
// ones, in root mean square relative to theirs: its own error, and that of plain
// sums over operands rounded to bfloat16.
func Rounding(e engine.Engine, op engine.ConvOp, p engine.ConvProblem, a, b []float32) (own, bf16 float64, err error) {
	r := convReference(op, p)
	got, err := RunConv(e, op, p, a, b)
	if err != nil {
		return 0, 0, err
	}
	want, _, _ := expect(r, a, b)
	plain, _, _ := expect(r, rounded(a), rounded(b))
	var norm, ours, theirs float64
	for i, w := range want {
		norm += w * w
		ours += (float64(got[i]) - w) * (float64(got[i]) - w)
		theirs += (plain[i] - w) * (plain[i] - w)
	}
	return math.Sqrt(ours / norm), math.Sqrt(theirs / norm), nil
}

// RunConv is the result of one op of a convolution.
func RunConv(e engine.Engine, op engine.ConvOp, p engine.ConvProblem, a, b []float32) ([]float32, error) {
	k, err := e.Conv(op, p)
	if err != nil {
		return nil, err
	}
	dst, scratch := newBuffer(convReference(op, p).dst, 0), newBuffer((k.Scratch()+3)/4, 0)
	err = k.Run(dst.pointer(), unsafe.Pointer(unsafe.SliceData(a)), unsafe.Pointer(unsafe.SliceData(b)), scratch.pointer())
	if err != nil {
		return nil, err
	}
	return dst.data(), k.Close()
}

// Operands are the sizes of a and b of one op of a convolution.
func Operands(op engine.ConvOp, p engine.ConvProblem) (a, b int) {
	r := convReference(op, p)
	return r.a, r.b
}
