package cpu

import (
	"fmt"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// gather takes rows of bytes.
type gather struct {
	jobs *threads.Jobs
	x, y unsafe.Pointer
	idx  []int32
	rows int // of x
	size int // of a row, in bytes
}

func checkRows(idx []int32, rows int) error {
	for k, at := range idx {
		if at < 0 || int(at) >= rows {
			return fmt.Errorf("index %d at %d is outside a table of %d rows", at, k, rows)
		}
	}
	return nil
}

func (g *gather) Run() error {
	if err := checkRows(g.idx, g.rows); err != nil {
		return err
	}
	g.jobs.Run(g, len(g.idx)*g.size/4)
	return nil
}

func (g *gather) Part(_, w, n int) {
	x, y := array.Span[byte](g.x, g.rows*g.size), array.Span[byte](g.y, len(g.idx)*g.size)
	lo, hi := len(g.idx)*w/n, len(g.idx)*(w+1)/n
	for i := lo; i < hi; i++ {
		copy(y[i*g.size:][:g.size], x[int(g.idx[i])*g.size:][:g.size])
	}
}

// scatter adds rows; each thread adds its own columns, in order.
type scatter[T any] struct {
	jobs *threads.Jobs
	d, y unsafe.Pointer
	idx  []int32
	rows int // of y
	cols int
	add  func(y *T, x T)
}

func (s *scatter[T]) Run() error {
	if err := checkRows(s.idx, s.rows); err != nil {
		return err
	}
	clear(array.Span[T](s.y, s.rows*s.cols))
	s.jobs.Run(s, len(s.idx)*s.cols)
	return nil
}

func (s *scatter[T]) Part(_, w, n int) {
	d, y := array.Span[T](s.d, len(s.idx)*s.cols), array.Span[T](s.y, s.rows*s.cols)
	lo, hi := s.cols*w/n, s.cols*(w+1)/n
	for i, at := range s.idx {
		row := y[int(at)*s.cols:][:s.cols]
		for c := lo; c < hi; c++ {
			s.add(&row[c], d[i*s.cols+c])
		}
	}
}

func plus[T array.Number | int32 | uint8](y *T, x T) { *y += x }

func plusBF16(y *uint16, x uint16) {
	*y = collective.ToBF16(collective.FromBF16(*y) + collective.FromBF16(x))
}

func newScatter(p *threads.Jobs, d graph.DType, x, idx, y array.Place) kernel {
	switch d {
	case graph.F32:
		return scatterOf(p, x, idx, y, plus[float32])
	case graph.F64:
		return scatterOf(p, x, idx, y, plus[float64])
	case graph.I32:
		return scatterOf(p, x, idx, y, plus[int32])
	case graph.I64:
		return scatterOf(p, x, idx, y, plus[int64])
	case graph.U8:
		return scatterOf(p, x, idx, y, plus[uint8])
	}
	return scatterOf(p, x, idx, y, plusBF16)
}

func scatterOf[T any](p *threads.Jobs, x, idx, y array.Place, add func(*T, T)) kernel {
	rows := y.Dims.At(0)
	return &scatter[T]{p, x.Mem, y.Mem, array.Elems[int32](idx), rows, y.Len() / max(rows, 1), add}
}

func newGather(p *threads.Jobs, x, idx, y array.Place) kernel {
	rows := x.Dims.At(0)
	return &gather{p, x.Mem, y.Mem, array.Elems[int32](idx), rows, x.Dims.With(0, 1).Len() * x.DType.Size()}
}
