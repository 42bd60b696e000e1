package kernel

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
)

// walk is two arrays walked side by side: extents, and the strides of both in
// elements. Axes that both walk as one are joined, and those of extent 1 dropped.
type walk struct {
	dims, xs, ys []int
}

func newWalk(dims, xs, ys graph.Dims) walk {
	var w walk
	for i := range dims.Rank() {
		d, a, b := dims.At(i), xs.At(i), ys.At(i)
		if d == 1 {
			continue
		}
		if k := len(w.dims) - 1; k >= 0 && w.xs[k] == a*d && w.ys[k] == b*d {
			w.dims[k], w.xs[k], w.ys[k] = w.dims[k]*d, a, b
			continue
		}
		w.dims, w.xs, w.ys = append(w.dims, d), append(w.xs, a), append(w.ys, b)
	}
	if len(w.dims) == 0 {
		w = walk{[]int{1}, []int{1}, []int{1}}
	}
	return w
}

func (w walk) len() int { return axes{dims: w.dims}.len() }

// units is how many bytes, up to 16, can be moved at once where elements have size
// bytes, and arrays begin at multiples of 16 bytes plus an offset in elements.
func (w walk) units(size int, offsets ...int) int {
	last := len(w.dims) - 1
	if w.xs[last] != 1 || w.ys[last] != 1 {
		return size
	}
	fits := func(unit int) bool {
		each := unit / size
		ok := w.dims[last]%each == 0
		for _, list := range [][]int{w.xs[:last], w.ys[:last], offsets} {
			for _, v := range list {
				ok = ok && v%each == 0
			}
		}
		return ok
	}
	unit := size
	for unit < 16 && fits(2*unit) {
		unit *= 2
	}
	return unit
}

// in is the walk in units of so many elements.
func (w walk) in(each int) walk {
	last := len(w.dims) - 1
	u := walk{slices.Clone(w.dims), slices.Clone(w.xs), slices.Clone(w.ys)}
	u.dims[last] /= each
	for i := range last {
		u.xs[i] /= each
		u.ys[i] /= each
	}
	return u
}

// unitType is the type of a unit of so many bytes.
func unitType(bytes int) string {
	return map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "uint2", 16: "uint4"}[bytes]
}

// moves are copies of arrays at strides, done by one kernel: each takes some blocks.
type moves []moving

// moving copies x, from element xOff on, to y, from yOff on.
type moving struct {
	walk
	x, y       operand
	xOff, yOff int
}

// offset is where an operand lies behind a multiple of 16 bytes, in elements.
func (m *making) offset(x operand) int {
	_, _, off := m.p.View(x.value)
	return off % 16 / x.dtype.Size()
}

const movesMost = 16 // arrays of a kernel: their arguments stay below 4 KiB

// launches writes the kernels.
func (m *making) launches(all moves) (launches []Launch, err error) {
	all = slices.DeleteFunc(slices.Clone(all), func(c moving) bool { return c.len() == 0 })
	for part := range slices.Chunk(all, movesMost) {
		l, err := m.moveLaunch(part)
		if err != nil {
			return nil, err
		}
		launches = append(launches, l)
	}
	return launches, nil
}

func (m *making) moveLaunch(all moves) (Launch, error) {
	unit, rank, longest := 16, 1, 0
	for _, c := range all {
		unit = min(unit, c.units(c.x.dtype.Size(), c.xOff+m.offset(c.x), c.yOff+m.offset(c.y)))
		rank = max(rank, len(c.dims))
		longest = max(longest, c.x.dims.Len(), c.y.dims.Len())
	}
	s := &source{wide: m.wideFor(longest)}
	t := unitType(unit)
	s.helper(fmt.Sprintf(`struct move {
	const %s *x;
	%[1]s *y;
	i64 n, first, xs[%d], ys[%[2]d];
	quot d[%[2]d];
};
`, t, rank))
	s.int("n", len(all))
	s.declare("struct move ", fmt.Sprintf("e[%d]", movesMost))
	grid := 0
	for _, c := range all {
		u := c.in(unit / c.x.dtype.Size())
		s.add(8, field{kind: valueField, value: c.x.value, bits: uint64(c.xOff * c.x.dtype.Size())})
		s.add(8, field{kind: valueField, value: c.y.value, bits: uint64(c.yOff * c.y.dtype.Size())})
		s.add(8, field{bits: uint64(u.len())})
		s.add(8, field{bits: uint64(grid)})
		more := rank - len(u.dims) // outer axes of extent 1
		for _, list := range [][]int{u.xs, u.ys} {
			for range more {
				s.add(8, field{})
			}
			for _, v := range list {
				s.add(8, field{bits: uint64(v)})
			}
		}
		for range more {
			s.addQuot(1)
		}
		for _, d := range u.dims {
			s.addQuot(d)
		}
		grid += blocks(u.len())
	}
	s.size = 8 + movesMost*(32+32*rank)
	s.line(`KERNEL(NAME, %d, struct NAME_args) {
	int k = 0;
	while (k + 1 < a.n && BID >= a.e[k + 1].first)
		k++;
	const struct move *e = &a.e[k];
	idx p = (idx)(BID - e->first) * %[1]d + TID;
	if (p >= (idx)e->n)
		return;
	idx x = 0, y = 0;`, Block)
	for i := rank - 1; i >= 0; i-- {
		if i == 0 {
			s.line("\tx += p * (idx)e->xs[0];\n\ty += p * (idx)e->ys[0];")
			continue
		}
		s.line("\tconst idx q%d = QUOT(p, e->d[%[1]d]), r%[1]d = p - q%[1]d * (idx)e->d[%[1]d].d;", i)
		s.line("\tx += r%d * (idx)e->xs[%[1]d];\n\ty += r%[1]d * (idx)e->ys[%[1]d];\n\tp = q%[1]d;", i)
	}
	s.line("\te->y[y] = e->x[x];\n}")
	return s.launch("move", grid)
}

// slice takes x[start + at·step].
func (m *making) slice(op graph.Slice) ([]Launch, error) {
	x, y := m.operands(m.s.In)[0], m.operands(m.s.Out)[0]
	xs, off := x.dims.Strides(), 0
	for i := range x.dims.Rank() {
		off += op.Start.At(i) * xs.At(i)
		xs = xs.With(i, xs.At(i)*op.Step.At(i))
	}
	return m.launches(moves{{newWalk(y.dims, xs, y.dims.Strides()), x, y, off, 0}})
}

// concat puts each operand after the other along the axis.
func (m *making) concat(op graph.Concat) ([]Launch, error) {
	y := m.operands(m.s.Out)[0]
	var all moves
	at, axis := 0, y.dims.Strides().At(op.Axis)
	for _, x := range m.operands(m.s.In) {
		all = append(all, moving{newWalk(x.dims, x.dims.Strides(), y.dims.Strides()), x, y, 0, at * axis})
		at += x.dims.At(op.Axis)
	}
	return m.launches(all)
}
