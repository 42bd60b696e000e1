package exec

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// ChannelsLast is a copy of an array of four axes (N, C, H, W) in the order
// (N, H, W, C), which becomes its type: how a device may keep images and weights.
func ChannelsLast(t *Tensor) *Tensor { return permuted(t, 0, 2, 3, 1) }

// ChannelsFirst is a copy of an array (N, H, W, C) in the order (N, C, H, W).
func ChannelsFirst(t *Tensor) *Tensor { return permuted(t, 0, 3, 1, 2) }

// permuted is a copy of t with axes perm[0], perm[1], ….
func permuted(t *Tensor, perm ...int) *Tensor {
	s := t.Type.Shape
	if s.Rank() != len(perm) {
		panic(fmt.Sprintf("exec: the order of channels of %v, which has %d axes", t.Type, s.Rank()))
	}
	out := NewTensor(graph.T(t.Type.DType, s.At(perm[0]), s.At(perm[1]), s.At(perm[2]), s.At(perm[3])))
	size, from, to := t.Type.DType.Size(), s.Strides(), out.Type.Shape
	at := 0
	for a := range to.At(0) {
		for b := range to.At(1) {
			for c := range to.At(2) {
				for d := range to.At(3) {
					k := a*from.At(perm[0]) + b*from.At(perm[1]) + c*from.At(perm[2]) + d*from.At(perm[3])
					copy(out.data[at:at+size], t.data[k*size:])
					at += size
				}
			}
		}
	}
	return out
}
