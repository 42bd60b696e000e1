package cpu

import (
	"fmt"
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// plane is PlaneGather and PlaneScatter, shared by images.
type plane[T any] struct {
	jobs    *threads.Jobs
	x, y    unsafe.Pointer
	idx     []int32
	in, out graph.Shape     // (N, H, W, C)
	add     func(y *T, x T) // of a scatter, nil for a gather
}

func (k *plane[T]) Run() error {
	small, big := k.out, k.in
	if k.add != nil {
		small, big = k.in, k.out
	}
	pixels := big.At(1) * big.At(2)
	for e, at := range k.idx {
		if at < 0 || int(at) >= pixels {
			return fmt.Errorf("index %d at %d is outside a plane of %d pixels", at, logical(e, small), pixels)
		}
	}
	k.jobs.Run(k, k.in.Len()+k.out.Len())
	return nil
}

// logical is the number in (N, C, H, W) order of element e of an image in
// (N, H, W, C) order.
func logical(e int, s graph.Shape) int {
	c := s.At(3)
	pixels := s.At(1) * s.At(2)
	return (e/c/pixels*c+e%c)*pixels + e/c%pixels
}

func (k *plane[T]) Part(_, w, n int) {
	images := k.in.At(0)
	lo, hi := images*w/n, images*(w+1)/n
	xl, yl := k.in.Len()/max(images, 1), k.out.Len()/max(images, 1)
	c := k.in.At(3)
	x, y := array.Span[T](k.x, k.in.Len()), array.Span[T](k.y, k.out.Len())
	for i := lo; i < hi; i++ {
		xi, yi := x[i*xl:][:xl], y[i*yl:][:yl]
		if k.add == nil {
			for e, at := range k.idx[i*yl:][:yl] {
				yi[e] = xi[int(at)*c+e%c]
			}
			continue
		}
		clear(yi)
		for e, at := range k.idx[i*xl:][:xl] {
			k.add(&yi[int(at)*c+e%c], xi[e])
		}
	}
}

func newPlaneGather(p *threads.Jobs, x, idx, y array.Place) kernel {
	switch x.DType.Size() {
	case 1:
		return planeOf[uint8](p, x, idx, y, nil)
	case 2:
		return planeOf[uint16](p, x, idx, y, nil)
	case 4:
		return planeOf[uint32](p, x, idx, y, nil)
	}
	return planeOf[uint64](p, x, idx, y, nil)
}

func newPlaneScatter(p *threads.Jobs, x, idx, y array.Place) kernel {
	switch x.DType {
	case graph.F32:
		return planeOf(p, x, idx, y, plus[float32])
	case graph.F64:
		return planeOf(p, x, idx, y, plus[float64])
	case graph.I32:
		return planeOf(p, x, idx, y, plus[int32])
	case graph.I64:
		return planeOf(p, x, idx, y, plus[int64])
	case graph.U8:
		return planeOf(p, x, idx, y, plus[uint8])
	}
	return planeOf(p, x, idx, y, plusBF16)
}

func planeOf[T any](p *threads.Jobs, x, idx, y array.Place, add func(*T, T)) kernel {
	return &plane[T]{p, x.Mem, y.Mem, array.Elems[int32](idx), x.Dims, y.Dims, add}
}
