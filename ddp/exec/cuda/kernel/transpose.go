package kernel

import (
	"fmt"
	"slices"

	"ebtrain/ddp/graph"
)

// transpose permutes axes; types may differ. Where neighbours stay neighbours it is a
// plain move, else tiles of tile×tile elements, of the axis along which x is
// contiguous and of that along which y is, pass through shared memory:
//
//	x: rows of neighbours in ──▶ tile ──▶ y: rows of neighbours out
func (m *making) transpose(op graph.Transpose) ([]Launch, error) {
	x, y := m.operands(m.s.In)[0], m.operands(m.s.Out)[0]
	xs, st := y.dims, x.dims.Strides()
	for i := range y.dims.Rank() {
		xs = xs.With(i, st.At(op.Perm.At(i)))
	}
	w := newWalk(y.dims, xs, y.dims.Strides())
	last := len(w.dims) - 1
	switch {
	case w.xs[last] == 1 && x.dtype == y.dtype:
		return m.launches(moves{{w, x, y, 0, 0}})
	case w.xs[last] == 1 && last == 0:
		return m.convert()
	}
	in := slices.Index(w.xs, 1) // the axis along which x is contiguous
	if in == last {             // both are: a move that converts, as tiles of one row
		in = last - 1
	}
	switch {
	case w.dims[last] <= mostShort:
		return m.shortRows(w, x, y, last, in)
	case w.dims[in] <= mostShort:
		return m.shortRows(w, x, y, in, last)
	}
	return m.tiled(w, x, y, in)
}

// mostShort is how many elements a row has at most that a thread moves alone: the channels
// of a picture, of which a tile would be mostly empty.
const mostShort = 8

// shortRows writes the kernel whose threads move the elements of a short axis each,
// neighbouring threads at neighbours along the other axis that is contiguous in x or y.
func (m *making) shortRows(w walk, x, y operand, short, long int) ([]Launch, error) {
	s := &source{wide: m.wideFor(x.dims.Len())}
	s.pointer("const "+ctype(x.dtype), "x", x.value)
	s.pointer(ctype(y.dtype), "y", y.value)
	s.int("sx", w.xs[short])
	s.int("sy", w.ys[short])
	order := []int{long}
	for i := len(w.dims) - 1; i >= 0; i-- {
		if i != long && i != short {
			order = append(order, i)
		}
	}
	rows := 1
	for _, i := range order {
		rows *= w.dims[i]
	}
	s.int("rows", rows)
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tidx b = BID * (idx)%[1]d + TID, q, xo = 0, yo = 0;\n\tif (b >= (idx)a.rows)\n\t\treturn;", Block)
	for _, i := range order {
		s.quot(fmt.Sprintf("d%d", i), w.dims[i])
		s.int(fmt.Sprintf("xs%d", i), w.xs[i])
		s.int(fmt.Sprintf("ys%d", i), w.ys[i])
		s.line("\tq = QUOT(b, a.d%d);\n\tb -= q * (idx)a.d%[1]d.d;\n\txo += b * (idx)a.xs%[1]d;\n\tyo += b * (idx)a.ys%[1]d;\n\tb = q;", i)
	}
	s.line("\t%s row[%d];\n\tUNROLL\n\tfor (int k = 0; k < %[2]d; k++)\n\t\trow[k] = a.x[xo + k * (idx)a.sx];", ctype(x.dtype), w.dims[short])
	s.line("\tUNROLL\n\tfor (int k = 0; k < %d; k++)\n\t\ta.y[yo + k * (idx)a.sy] = %s;\n}", w.dims[short], converted(x.dtype, y.dtype, "row[k]"))
	l, err := s.launch("transpose", blocks(rows))
	return []Launch{l}, err
}

// converted is the element of type x as one of type y.
func converted(x, y graph.DType, element string) string {
	if x == y {
		return element
	}
	return stored(y, register(x), loaded(x, register(x), element))
}

const tile = 32

// tiled writes the kernel that moves tiles. Its blocks count tiles along y's last
// axis, then along x's, then the other axes.
func (m *making) tiled(w walk, x, y operand, in int) ([]Launch, error) {
	last := len(w.dims) - 1
	s := &source{wide: m.wideFor(x.dims.Len())}
	s.pointer("const "+ctype(x.dtype), "x", x.value)
	s.pointer(ctype(y.dtype), "y", y.value)
	across, down := ceil(w.dims[last], tile), ceil(w.dims[in], tile)
	s.quot("across", across)
	s.quot("down", down)
	for _, f := range []struct {
		name string
		v    int
	}{{"ny", w.dims[last]}, {"xy", w.xs[last]}, {"nx", w.dims[in]}, {"xx", w.xs[in]}, {"yx", w.ys[in]}} {
		s.int(f.name, f.v)
	}
	s.line("KERNEL_SYNC(NAME, %d, struct NAME_args) {\n\tSHARED(%s, sh, [%d][%d]);", Block, ctype(x.dtype), tile, tile+1)
	s.line("\tidx b = BID, q = QUOT(b, a.across);\n\tconst idx j0 = (b - q * (idx)a.across.d) * %d;\n\tb = q, q = QUOT(b, a.down);\n\tconst idx i0 = (b - q * (idx)a.down.d) * %[1]d;\n\tidx xo = 0, yo = 0;", tile)
	grid := across * down
	for i := last - 1; i >= 0; i-- {
		if i == in {
			continue
		}
		s.quot(fmt.Sprintf("d%d", i), w.dims[i])
		s.int(fmt.Sprintf("xs%d", i), w.xs[i])
		s.int(fmt.Sprintf("ys%d", i), w.ys[i])
		s.line("\tb = q, q = QUOT(b, a.d%d);\n\tb -= q * (idx)a.d%[1]d.d;\n\txo += b * (idx)a.xs%[1]d;\n\tyo += b * (idx)a.ys%[1]d;", i)
		grid *= w.dims[i]
	}
	value := converted(x.dtype, y.dtype, fmt.Sprintf("sh[k][TID %% %d]", tile))
	s.line(`	for (int k = TID / %d; k < %[1]d; k += %[2]d) {
		const idx i = i0 + TID %% %[1]d, j = j0 + k;
		if (i < (idx)a.nx && j < (idx)a.ny)
			sh[TID %% %[1]d][k] = a.x[xo + i * (idx)a.xx + j * (idx)a.xy];
	}
	SYNC();
	for (int k = TID / %[1]d; k < %[1]d; k += %[2]d) {
		const idx i = i0 + k, j = j0 + TID %% %[1]d;
		if (i < (idx)a.nx && j < (idx)a.ny)
			a.y[yo + i * (idx)a.yx + j] = %[3]s;
	}
}`, tile, Block/tile, value)
	l, err := s.launch("transpose", grid)
	return []Launch{l}, err
}
