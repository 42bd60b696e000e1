package cpu

import (
	"fmt"
	"unsafe"

	"ebtrain/ddp/graph"
)

// gather takes rows of bytes.
type gather struct {
	pool *pool
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

func (g *gather) run() error {
	if err := checkRows(g.idx, g.rows); err != nil {
		return err
	}
	g.pool.run(g, len(g.idx)*g.size/4)
	return nil
}

func (g *gather) part(_, w, n int) {
	x, y := span[byte](g.x, g.rows*g.size), span[byte](g.y, len(g.idx)*g.size)
	lo, hi := len(g.idx)*w/n, len(g.idx)*(w+1)/n
	for i := lo; i < hi; i++ {
		copy(y[i*g.size:][:g.size], x[int(g.idx[i])*g.size:][:g.size])
	}
}

// scatter adds rows; each thread adds its own columns, in order.
type scatter[T any] struct {
	pool *pool
	d, y unsafe.Pointer
	idx  []int32
	rows int // of y
	cols int
	add  func(y *T, x T)
}

func (s *scatter[T]) run() error {
	if err := checkRows(s.idx, s.rows); err != nil {
		return err
	}
	clear(span[T](s.y, s.rows*s.cols))
	s.pool.run(s, len(s.idx)*s.cols)
	return nil
}

func (s *scatter[T]) part(_, w, n int) {
	d, y := span[T](s.d, len(s.idx)*s.cols), span[T](s.y, s.rows*s.cols)
	lo, hi := s.cols*w/n, s.cols*(w+1)/n
	for i, at := range s.idx {
		row := y[int(at)*s.cols:][:s.cols]
		for c := lo; c < hi; c++ {
			s.add(&row[c], d[i*s.cols+c])
		}
	}
}

func plus[T number | int32 | uint8](y *T, x T) { *y += x }

func plusBF16(y *uint16, x uint16) { *y = toBF16(fromBF16(*y) + fromBF16(x)) }

func newScatter(p *pool, d graph.DType, x, idx, y place) kernel {
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

func scatterOf[T any](p *pool, x, idx, y place, add func(*T, T)) kernel {
	rows := y.dims.At(0)
	return &scatter[T]{p, x.mem, y.mem, span[int32](idx.mem, idx.dims.Len()), rows, y.dims.Len() / max(rows, 1), add}
}

func newGather(p *pool, x, idx, y place) kernel {
	rows := x.dims.At(0)
	return &gather{p, x.mem, y.mem, span[int32](idx.mem, idx.dims.Len()), rows, x.dims.With(0, 1).Len() * x.dtype.Size()}
}
