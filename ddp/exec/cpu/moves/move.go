package moves

import (
	"unsafe"

	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// move copies an array of up to MaxRank axes element by element: y at its
// strides from x at its strides. It is transpose, slice, pad and concat.
type move struct {
	jobs   *threads.Jobs
	dims   []int
	xs, ys []int // strides in elements
	x, y   unsafe.Pointer
	size   int    // of an element
	zero   []byte // memory to clear first
}

// newMove joins axes that both sides walk alike.
func newMove(jobs *threads.Jobs, dims, xs, ys graph.Dims, x, y unsafe.Pointer, size int) *move {
	m := &move{jobs: jobs, x: x, y: y, size: size}
	for i := range dims.Rank() {
		d, a, b := dims.At(i), xs.At(i), ys.At(i)
		if d == 1 {
			continue
		}
		if k := len(m.dims) - 1; k >= 0 && m.xs[k] == a*d && m.ys[k] == b*d {
			m.dims[k], m.xs[k], m.ys[k] = m.dims[k]*d, a, b
			continue
		}
		m.dims, m.xs, m.ys = append(m.dims, d), append(m.xs, a), append(m.ys, b)
	}
	for len(m.dims) < 3 {
		m.dims, m.xs, m.ys = append([]int{1}, m.dims...), append([]int{0}, m.xs...), append([]int{0}, m.ys...)
	}
	return m
}

func (m *move) Run() error {
	clear(m.zero)
	work := 1
	for _, d := range m.dims {
		work *= d
	}
	if work > 0 {
		m.jobs.Run(m, work)
	}
	return nil
}

// Part moves a range of the combined outer axes; the last two axes are moved
// as a matrix.
func (m *move) Part(_, w, n int) {
	k := len(m.dims) - 2
	outer := 1
	for _, d := range m.dims[:k] {
		outer *= d
	}
	rows := m.dims[k]
	total := outer * rows
	lo, hi := threads.Part(total, w, n)
	for at := lo; at < hi; {
		r := at % rows
		count := min(rows-r, hi-at)
		xo, yo := r*m.xs[k], r*m.ys[k]
		for i, o := k-1, at/rows; i >= 0; i-- {
			c := o % m.dims[i]
			o /= m.dims[i]
			xo += c * m.xs[i]
			yo += c * m.ys[i]
		}
		m.matrix(unsafe.Add(m.x, xo*m.size), unsafe.Add(m.y, yo*m.size), count)
		at += count
	}
}

func (m *move) matrix(x, y unsafe.Pointer, rows int) {
	k := len(m.dims) - 2
	cols, xr, xc, yr, yc := m.dims[k+1], m.xs[k], m.xs[k+1], m.ys[k], m.ys[k+1]
	if xc == 1 && yc == 1 {
		for r := range rows {
			copy(unsafe.Slice((*byte)(unsafe.Add(y, r*yr*m.size)), cols*m.size), unsafe.Slice((*byte)(unsafe.Add(x, r*xr*m.size)), cols*m.size))
		}
		return
	}
	switch m.size {
	case 1:
		moveMatrix[uint8](x, y, rows, cols, xr, xc, yr, yc)
	case 2:
		moveMatrix[uint16](x, y, rows, cols, xr, xc, yr, yc)
	case 4:
		moveMatrix[uint32](x, y, rows, cols, xr, xc, yr, yc)
	default:
		moveMatrix[uint64](x, y, rows, cols, xr, xc, yr, yc)
	}
}

// moveMatrix works in squares, so that both sides stay in the cache.
func moveMatrix[E any](x, y unsafe.Pointer, rows, cols, xr, xc, yr, yc int) {
	if rows == 0 || cols == 0 {
		return
	}
	xs := unsafe.Slice((*E)(x), (rows-1)*xr+(cols-1)*xc+1)
	ys := unsafe.Slice((*E)(y), (rows-1)*yr+(cols-1)*yc+1)
	const side = 16
	for r0 := 0; r0 < rows; r0 += side {
		r1 := min(r0+side, rows)
		for c0 := 0; c0 < cols; c0 += side {
			c1 := min(c0+side, cols)
			for r := r0; r < r1; r++ {
				i, j := r*xr+c0*xc, r*yr+c0*yc
				for range c1 - c0 {
					ys[j] = xs[i]
					i += xc
					j += yc
				}
			}
		}
	}
}

// newTranspose makes y from x with axes permuted.
func newTranspose(jobs *threads.Jobs, op graph.Transpose, x, y array.Place) Kernel {
	xs, st := y.Dims, x.Dims.Strides()
	for i := range y.Dims.Rank() {
		xs = xs.With(i, st.At(op.Perm.At(i)))
	}
	return newMove(jobs, y.Dims, xs, y.Dims.Strides(), x.Mem, y.Mem, x.DType.Size())
}

func newSlice(jobs *threads.Jobs, op graph.Slice, x, y array.Place) Kernel {
	xs, off := x.Dims.Strides(), 0
	for i := range x.Dims.Rank() {
		off += op.Start.At(i) * xs.At(i)
		xs = xs.With(i, xs.At(i)*op.Step.At(i))
	}
	return newMove(jobs, y.Dims, xs, y.Dims.Strides(), x.From(off, y.Dims), y.Mem, x.DType.Size())
}

func newPad(jobs *threads.Jobs, op graph.Pad, x, y array.Place) Kernel {
	ys, off := y.Dims.Strides(), 0
	for i := range x.Dims.Rank() {
		off += op.Lo.At(i) * ys.At(i)
		ys = ys.With(i, ys.At(i)*(op.Gap.At(i)+1))
	}
	m := newMove(jobs, x.Dims, x.Dims.Strides(), ys, x.Mem, y.From(off, x.Dims), x.DType.Size())
	m.zero = y.Bytes()
	return m
}

func newConcat(jobs *threads.Jobs, op graph.Concat, xs []array.Place, y array.Place) Kernel {
	var all sequence
	at, size, axis := 0, y.DType.Size(), y.Dims.Strides().At(op.Axis)
	for _, x := range xs {
		all = append(all, newMove(jobs, x.Dims, x.Dims.Strides(), y.Dims.Strides(), x.Mem, y.From(at*axis, x.Dims), size))
		at += x.Dims.At(op.Axis)
	}
	return all
}

// sequence is kernels one after the other.
type sequence []Kernel

func (s sequence) Run() error {
	for _, k := range s {
		if err := k.Run(); err != nil {
			return err
		}
	}
	return nil
}

// copyBytes copies memory.
type copyBytes struct{ dst, src []byte }

func (c copyBytes) Run() error { copy(c.dst, c.src); return nil }
