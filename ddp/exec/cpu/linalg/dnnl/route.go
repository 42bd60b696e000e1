//go:build cgo && !nodnnl

package dnnl

import "ebtrain/ddp/exec/cpu/linalg/engine"

// via is how a convolution is computed.
type via uint8

const (
	asConv   via = iota // by oneDNN's convolution
	asMatMul            // 1×1: images are matrices (N·H·W, C) as they lie
	asHead              // the kernel covers the image: images are matrices (N, C·H·W)
	asFold              // GradX of few channels: a matrix product, then sums
)

// foldChannels is up to how many channels asFold is the faster way: oneDNN works
// on 16 channels at a time, however few there are.
const foldChannels = 4

// vector is how many channels oneDNN works on at a time.
const vector = 16

// route depends on the geometry alone, never on a measurement, so that every
// rank and every run takes the same way and gets the same bits.
func route(op engine.ConvOp, p engine.ConvProblem) via {
	unpadded := p.PadT == 0 && p.PadB == 0 && p.PadL == 0 && p.PadR == 0
	switch {
	case p.Groups != 1:
		return asConv
	case unpadded && p.KH == 1 && p.KW == 1 && p.StrideH == 1 && p.StrideW == 1:
		return asMatMul
	case unpadded && p.KH == p.H && p.KW == p.W && p.DilH == 1 && p.DilW == 1:
		return asHead
	case op == engine.GradX && p.C <= foldChannels && p.KH*p.KW > 1:
		return asFold
	}
	return asConv
}

// fewChannels is up to how many of them oneDNN is slow in bfloat16; see slow.
const fewChannels = 4

// slow says whether a convolution of oneDNN's own takes longer in bfloat16 than in float32
// with matrix instructions (AMX, 2.6.3): gradients of weights of few channels, 1.5 to 2
// times, and of images through few filters, 1.3 to 2.4 times. With 8 it is no slower.
func slow(op engine.ConvOp, p engine.ConvProblem) bool {
	return p.Groups == 1 && (op == engine.GradW && p.C <= fewChannels || op == engine.GradX && p.O <= fewChannels)
}

// sound is a problem as oneDNN's own convolution may be asked for it, where some
// of its kernels are wrong. The
// result is the same.
//
//   - GradW in bfloat16 over images narrower than the stride (2.6.3 and 3.7.2,
//     jit_bf16:avx512_core_bf16) is done in float32. The kernel copies every row
//     of x into scratch, cut into StrideW phases (pixels 0, StrideW, …; pixels 1,
//     StrideW+1, …). A row of fewer pixels has phases without any, and those it
//     never writes; a window that hangs over the edge of the image reads them all
//     the same. Whatever lay in scratch, NaN and Inf among it, got into dw.
//   - GradW of 1×1 windows at a stride, of channels that are no whole vectors (2.6.3,
//     jit_1x1:avx512_core), is done without the last columns, which no window sees:
//     it then takes another kernel. This one wrote over x, or dw was wrong.
//   - Forward to images one pixel wide at a stride above 1 (3.7.2, brg_conv_fwd)
//     is done at stride 1, which means the same, over the pixels that the one
//     window sees. Of one channel, or of few under a kernel as wide as the image,
//     y was wrong.
//   - Forward in bfloat16 of images no larger than their padding, or with a padding
//     in which a whole window fits (2.6.3, brgconv:avx512_core_amx_bf16), is done in
//     float32: it called a kernel that it had not made, where a window's rows or
//     columns are nearly all padding.
func sound(op engine.ConvOp, p engine.ConvProblem) engine.ConvProblem {
	if op == engine.GradW && p.W < p.StrideW {
		p.BF16 = false
	}
	if op == engine.GradW && p.KH == 1 && p.KW == 1 && p.C%vector != 0 && p.PadL == 0 && p.PadR == 0 && p.StrideW > 1 {
		p.W = (p.OW-1)*p.StrideW + 1
	}
	if right := (p.KW-1)*p.DilW + 1 - p.PadL; op == engine.Forward && p.OW == 1 && p.StrideW > 1 && right > 0 {
		p.W = min(p.W, right)
		p.StrideW, p.PadR = 1, right-p.W
	}
	if op == engine.Forward && (max(p.PadL, p.PadR) >= min(p.W, (p.KW-1)*p.DilW+1) || max(p.PadT, p.PadB) >= min(p.H, (p.KH-1)*p.DilH+1)) {
		p.BF16 = false
	}
	return p
}

// pointwise is a 1×1 convolution as a matrix product A·B. In Forward, A is the
// op's a and B its b; in GradX and GradW, A is the op's b and B its a.
func pointwise(op engine.ConvOp, p engine.ConvProblem) engine.MatMulProblem {
	pixels := p.N * p.H * p.W
	switch op {
	case engine.Forward: // y (px,O) = x (px,C) · w (O,C)ᵀ
		return engine.MatMulProblem{M: pixels, K: p.C, N: p.O, TransB: true, BF16: p.BF16}
	case engine.GradX: // dx (px,C) = dy (px,O) · w (O,C): a is w
		return engine.MatMulProblem{M: pixels, K: p.O, N: p.C, BF16: p.BF16}
	default: // dw (O,C) = dy (px,O)ᵀ · x (px,C): a is x
		return engine.MatMulProblem{M: p.O, K: pixels, N: p.C, TransA: true, BF16: p.BF16}
	}
}
