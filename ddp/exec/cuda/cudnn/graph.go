//go:build cgo

package cudnn

// #include "shim.h"
import "C"

import (
	"fmt"

	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// The tensors' names in variant packs.
const (
	idX = 'x'
	idW = 'w'
	idY = 'y'
)

// takes says whether cuDNN is asked for a problem at all: operands of one type, a
// result of theirs or, of bfloat16 operands, in float32.
func takes(t linalg.Types) bool {
	return t.A == t.B && (t.Dst == t.A || t.A == graph.BF16 && t.Dst == graph.F32)
}

// operation builds the graph of one operation that is problem p.
func (b *builder) operation(p linalg.Conv) desc {
	tx, tw, ty := p.Images()
	cg := p.C / p.Groups
	x := b.tensor(idX, tx, p.N, p.C, p.H, p.W)
	w := b.tensor(idW, tw, p.O, cg, p.KH, p.KW)
	y := b.tensor(idY, ty, p.N, p.O, p.OH, p.OW)
	conv := b.convolution(p)
	var op desc
	switch p.Op {
	case linalg.Forward:
		op = b.create(C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, x)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, w)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, y)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, conv)
		b.scale(op, p, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA)
	case linalg.GradX:
		op = b.create(C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, x)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, w)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, y)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, conv)
		b.scale(op, p, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA)
	default:
		op = b.create(C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, x)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, w)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, y)
		set(b, op, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, conv)
		b.scale(op, p, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, C.EB_CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)
	}
	b.finalize(op)
	g := b.create(C.EB_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
	set(b, g, C.EB_CUDNN_ATTR_OPERATIONGRAPH_OPS, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, op)
	set(b, g, C.EB_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, C.EB_CUDNN_TYPE_HANDLE, b.l.base)
	b.finalize(g)
	return g
}

// alignment is what cuDNN is told of operands, in bytes: the widest that a thread loads,
// and what every engine asks for at most. They lie better than that (linalg.Align), but
// nobody else tells cuDNN more than 16.
const alignment = 16

// tensor is an image (n, c, h, w), or weights, that lies channels-last.
func (b *builder) tensor(id int64, d graph.DType, n, c, h, w int) desc {
	t := b.create(C.EB_CUDNN_BACKEND_TENSOR_DESCRIPTOR)
	N, K, H, W := int64(n), int64(c), int64(h), int64(w)
	set(b, t, C.EB_CUDNN_ATTR_TENSOR_DATA_TYPE, C.EB_CUDNN_TYPE_DATA_TYPE, dataType(d))
	set(b, t, C.EB_CUDNN_ATTR_TENSOR_DIMENSIONS, C.EB_CUDNN_TYPE_INT64, N, K, H, W)
	set(b, t, C.EB_CUDNN_ATTR_TENSOR_STRIDES, C.EB_CUDNN_TYPE_INT64, H*W*K, 1, W*K, K)
	set(b, t, C.EB_CUDNN_ATTR_TENSOR_UNIQUE_ID, C.EB_CUDNN_TYPE_INT64, id)
	set(b, t, C.EB_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, C.EB_CUDNN_TYPE_INT64, int64(alignment))
	b.finalize(t)
	return t
}

// convolution is the geometry.
func (b *builder) convolution(p linalg.Conv) desc {
	c := b.create(C.EB_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, C.EB_CUDNN_TYPE_DATA_TYPE, dataType(sums(p)))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_CONV_MODE, C.EB_CUDNN_TYPE_CONVOLUTION_MODE, int32(C.EB_CUDNN_CROSS_CORRELATION))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, C.EB_CUDNN_TYPE_INT64, int64(2))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, C.EB_CUDNN_TYPE_INT64, int64(p.PadT), int64(p.PadL))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, C.EB_CUDNN_TYPE_INT64, int64(p.PadB), int64(p.PadR))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_DILATIONS, C.EB_CUDNN_TYPE_INT64, int64(p.DilH), int64(p.DilW))
	set(b, c, C.EB_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, C.EB_CUDNN_TYPE_INT64, int64(p.StrideH), int64(p.StrideW))
	b.finalize(c)
	return c
}

// scale says that the result is 1·conv + 0·what was there.
func (b *builder) scale(op desc, p linalg.Conv, alpha, beta C.int) {
	if sums(p) == graph.F64 {
		set(b, op, alpha, C.EB_CUDNN_TYPE_DOUBLE, 1.0)
		set(b, op, beta, C.EB_CUDNN_TYPE_DOUBLE, 0.0)
		return
	}
	set(b, op, alpha, C.EB_CUDNN_TYPE_FLOAT, float32(1))
	set(b, op, beta, C.EB_CUDNN_TYPE_FLOAT, float32(0))
}

// sums is the type in which products are added up.
func sums(p linalg.Conv) graph.DType {
	if p.T.A == graph.F64 {
		return graph.F64
	}
	return graph.F32
}

func dataType(d graph.DType) int32 {
	switch d {
	case graph.F32:
		return C.EB_CUDNN_DATA_FLOAT
	case graph.F64:
		return C.EB_CUDNN_DATA_DOUBLE
	case graph.BF16:
		return C.EB_CUDNN_DATA_BFLOAT16
	}
	panic(fmt.Sprintf("cudnn: %v has no tensors", d)) // linalg.Conv.Check knows three types
}
