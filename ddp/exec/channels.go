package exec

import (
	"fmt"
	"runtime"
	"sync"

	"ebtrain/ddp/graph"
)

// ChannelsLast is a copy of an array of four axes (N, C, H, W) in the order
// (N, H, W, C), which becomes its type: how a device may keep images and weights.
func ChannelsLast(t *Tensor) *Tensor {
	s := shapeOfImages(t)
	return transposed(t, graph.D(s.At(0), s.At(2), s.At(3), s.At(1)), s.At(1), s.At(2)*s.At(3))
}

// ChannelsFirst is a copy of an array (N, H, W, C) in the order (N, C, H, W).
func ChannelsFirst(t *Tensor) *Tensor {
	s := shapeOfImages(t)
	return transposed(t, graph.D(s.At(0), s.At(3), s.At(1), s.At(2)), s.At(1)*s.At(2), s.At(3))
}

func shapeOfImages(t *Tensor) graph.Dims {
	if t.Type.Shape.Rank() != 4 {
		panic(fmt.Sprintf("exec: the order of channels of %v, which has %d axes", t.Type, t.Type.Shape.Rank()))
	}
	return t.Type.Shape
}

// transposed is a copy of t, matrices of (rows, cols), with each transposed.
func transposed(t *Tensor, shape graph.Dims, rows, cols int) *Tensor {
	out := NewTensor(graph.Type{DType: t.Type.DType, Shape: shape})
	switch t.Type.DType.Size() {
	case 1:
		transposeAll(elems[uint8](out), elems[uint8](t), rows, cols)
	case 2:
		transposeAll(elems[uint16](out), elems[uint16](t), rows, cols)
	case 4:
		transposeAll(elems[uint32](out), elems[uint32](t), rows, cols)
	case 8:
		transposeAll(elems[uint64](out), elems[uint64](t), rows, cols)
	}
	return out
}

// transposeAll transposes matrices that lie one behind the other, several at a time.
func transposeAll[E any](dst, src []E, rows, cols int) {
	each := rows * cols
	if each == 0 {
		return
	}
	matrices := len(src) / each
	workers := min(matrices, runtime.GOMAXPROCS(0), 1+len(src)>>16)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for m := matrices * w / workers; m < matrices*(w+1)/workers; m++ {
				transpose(dst[m*each:][:each], src[m*each:][:each], rows, cols)
			}
		})
	}
	wg.Wait()
}

// transpose goes tile by tile, so that what is read and what is written stays in the cache.
func transpose[E any](dst, src []E, rows, cols int) {
	const tile = 32
	for r0 := 0; r0 < rows; r0 += tile {
		for c0 := 0; c0 < cols; c0 += tile {
			for r := r0; r < min(r0+tile, rows); r++ {
				for c := c0; c < min(c0+tile, cols); c++ {
					dst[c*rows+r] = src[r*cols+c]
				}
			}
		}
	}
}
