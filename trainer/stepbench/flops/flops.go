// Package flops counts the floating-point operations of a graph's convolutions
// and matrix products, which are nearly all of a training step.
//
// A multiply-add counts as two, as in every published peak. What lies outside
// the image counts as if it were multiplied, as it does in other counts (an
// implementation may skip it). Everything else counts as nothing.
package flops

import "ebtrain/ddp/graph"

// Kind is one of the ops that are counted.
type Kind string

const (
	Conv      Kind = "conv2d"
	ConvGradX Kind = "conv2d_grad_x" // and the transposed convolution
	ConvGradW Kind = "conv2d_grad_w"
	MatMul    Kind = "matmul"
)

// Count is the number of operations by kind.
type Count map[Kind]int64

// Of counts one run of the live part of g.
func Of(g *graph.Graph) Count {
	c := Count{}
	live := g.Live()
	for i, n := range g.Nodes() {
		if live[i] {
			kind, n := node(g, n)
			if n > 0 {
				c[kind] += n
			}
		}
	}
	return c
}

// Total is the sum over all kinds.
func (c Count) Total() int64 {
	var sum int64
	for _, n := range c {
		sum += n
	}
	return sum
}

// node counts one node. Each of a convolution's three ops visits every
// (output position, output channel, kernel position, input channel of the
// group) once.
func node(g *graph.Graph, n graph.Node) (Kind, int64) {
	shape := func(id graph.ID) graph.Shape { return g.Type(id).Shape }
	switch o := n.Op.(type) {
	case graph.Conv2D: // x, w → y
		return Conv, conv(shape(n.Out[0]), shape(n.In[1]))
	case graph.Conv2DGradX: // w, dy → dx
		return ConvGradX, conv(shape(n.In[1]), shape(n.In[0]))
	case graph.Conv2DGradW: // x, dy → dw
		return ConvGradW, conv(shape(n.In[1]), shape(n.Out[0]))
	case graph.MatMul:
		inner := shape(n.In[0]).At(1)
		if o.TransX {
			inner = shape(n.In[0]).At(0)
		}
		return MatMul, 2 * int64(shape(n.Out[0]).Len()) * int64(inner)
	}
	return "", 0
}

// conv is 2·N·O·OH·OW·(C/groups)·KH·KW for the output side y (N, O, OH, OW) and
// the weight w (O, C/groups, KH, KW).
func conv(y, w graph.Shape) int64 {
	return 2 * int64(y.Len()) * int64(w.At(1)) * int64(w.At(2)) * int64(w.At(3))
}
