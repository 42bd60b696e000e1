package moves

import (
	"fmt"
	"unsafe"

	"ebtrain/collective"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// table is what indices point into: the rows of a matrix, each index taking a
// whole row; or the pixels of images, each index taking one element of a pixel of
// its image, that of its own channel.
type table struct {
	idx    []int32
	images int
	pixels int // that have indices, of an image
	rows   int // of the matrix, or pixels of an image that are pointed to
	cols   int // of a row, or channels
	single bool
}

// rowTable is the matrix x with indices of rows.
func rowTable(x, idx array.Place) table {
	return table{idx: array.Elems[int32](idx), images: 1, pixels: idx.Len(), rows: x.Dims.At(0), cols: x.Dims.With(0, 1).Len()}
}

// pixelTable is the images x with indices of pixels.
func pixelTable(x, idx array.Place) table {
	pixels := func(p array.Place) int { return p.Dims.At(1) * p.Dims.At(2) }
	return table{idx: array.Elems[int32](idx), images: x.Dims.At(0), pixels: pixels(idx), rows: pixels(x), cols: x.Dims.At(3), single: true}
}

// check finds the first index that points outside.
func (t *table) check() error {
	for e, at := range t.idx {
		switch {
		case at >= 0 && int(at) < t.rows:
		case t.single:
			return fmt.Errorf("index %d at %d is outside a plane of %d pixels", at, t.logical(e), t.rows)
		default:
			return fmt.Errorf("index %d at %d is outside a table of %d rows", at, e, t.rows)
		}
	}
	return nil
}

// logical is the number in (N, C, H, W) order of index e, which lies in
// (N, H, W, C) order.
func (t *table) logical(e int) int {
	pixel, c := e/t.cols, e%t.cols
	return (pixel/t.pixels*t.cols+c)*t.pixels + pixel%t.pixels
}

// imageOf is the indices of image i, its elements that have one, and those that
// are pointed to.
func imageOf[T any](t *table, i int, few, many []T) ([]int32, []T, []T) {
	n, m := t.pixels*t.cols, t.rows*t.cols
	return t.idx[i*n:][:n], few[i*n:][:n], many[i*m:][:m]
}

// gather sets y to what the indices point to in x.
type gather[T any] struct {
	table
	jobs *threads.Jobs
	x, y []T
}

func (g *gather[T]) Run() error {
	if err := g.check(); err != nil {
		return err
	}
	work := len(g.x) + len(g.y)
	if !g.single {
		work = len(g.y) * int(unsafe.Sizeof(*new(T))) / 4
	}
	g.jobs.Run(g, work)
	return nil
}

// Part gathers some rows, or some images.
func (g *gather[T]) Part(_, w, n int) {
	c := g.cols
	if !g.single {
		lo, hi := threads.Part(len(g.idx), w, n)
		for i := lo; i < hi; i++ {
			copy(g.y[i*c:][:c], g.x[int(g.idx[i])*c:][:c])
		}
		return
	}
	lo, hi := threads.Part(g.images, w, n)
	for i := lo; i < hi; i++ {
		idx, y, x := imageOf(&g.table, i, g.y, g.x)
		for e, at := range idx {
			y[e] = x[int(at)*c+e%c]
		}
	}
}

// scatter adds x to what the indices point to in y, which starts at 0.
type scatter[T any] struct {
	table
	jobs *threads.Jobs
	x, y []T
	add  func(y *T, x T)
}

func (s *scatter[T]) Run() error {
	if err := s.check(); err != nil {
		return err
	}
	work := len(s.x)
	if s.single {
		work += len(s.y)
	} else {
		clear(s.y)
	}
	s.jobs.Run(s, work)
	return nil
}

// Part adds some columns of all rows, or some images, in the order of the
// indices: two indices may point to one place.
func (s *scatter[T]) Part(_, w, n int) {
	c := s.cols
	if !s.single {
		lo, hi := threads.Part(c, w, n)
		for i, at := range s.idx {
			row := s.y[int(at)*c:][:c]
			for j := lo; j < hi; j++ {
				s.add(&row[j], s.x[i*c+j])
			}
		}
		return
	}
	lo, hi := threads.Part(s.images, w, n)
	for i := lo; i < hi; i++ {
		idx, x, y := imageOf(&s.table, i, s.x, s.y)
		clear(y)
		for e, at := range idx {
			s.add(&y[int(at)*c+e%c], x[e])
		}
	}
}

func plus[T array.Number | int32 | uint8](y *T, x T) { *y += x }

func plusBF16(y *uint16, x uint16) {
	*y = collective.ToBF16(collective.FromBF16(*y) + collective.FromBF16(x))
}

func newGather(jobs *threads.Jobs, t table, x, y array.Place) Kernel {
	switch x.DType.Size() {
	case 1:
		return gatherOf[uint8](jobs, t, x, y)
	case 2:
		return gatherOf[uint16](jobs, t, x, y)
	case 4:
		return gatherOf[uint32](jobs, t, x, y)
	}
	return gatherOf[uint64](jobs, t, x, y)
}

func gatherOf[T any](jobs *threads.Jobs, t table, x, y array.Place) Kernel {
	return &gather[T]{t, jobs, array.Elems[T](x), array.Elems[T](y)}
}

func newScatter(jobs *threads.Jobs, t table, x, y array.Place) Kernel {
	switch x.DType {
	case graph.F32:
		return scatterOf(jobs, t, x, y, plus[float32])
	case graph.F64:
		return scatterOf(jobs, t, x, y, plus[float64])
	case graph.I32:
		return scatterOf(jobs, t, x, y, plus[int32])
	case graph.I64:
		return scatterOf(jobs, t, x, y, plus[int64])
	case graph.U8:
		return scatterOf(jobs, t, x, y, plus[uint8])
	}
	return scatterOf(jobs, t, x, y, plusBF16)
}

func scatterOf[T any](jobs *threads.Jobs, t table, x, y array.Place, add func(*T, T)) Kernel {
	return &scatter[T]{t, jobs, array.Elems[T](x), array.Elems[T](y), add}
}
