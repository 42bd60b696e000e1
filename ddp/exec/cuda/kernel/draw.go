package kernel

import (
	_ "embed"

	"ebtrain/ddp/graph"
)

// draws is Philox and the functions of package philox's normals, operation by
// operation.
//
//go:embed draw.h
var draws string

// draw fills rows with the elements of Philox streams: a thread a block of four.
func (m *making) draw(op graph.Draw) ([]Launch, error) {
	key, y := m.s.In[0], m.operands(m.s.Out)[0]
	rows := y.dims.At(0)
	columns := y.dims.Len() / rows
	perRow := ceil(columns, 4)
	s := &source{wide: m.wideFor(y.dims.Len(), rows*perRow)}
	s.helper(draws)
	s.pointer("const i64", "key", key)
	s.pointer(ctype(y.dtype), "y", y.value)
	s.int("name", int(op.Purpose)<<16|int(op.Sub))
	s.int("columns", columns)
	s.int("n", rows*perRow)
	s.quot("perRow", perRow)
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	s.line(`	const idx row = QUOT(p, a.perRow), block = p - row * (idx)a.perRow.d;
	u32 w[4] = {(u32)block, (u32)(a.key[2] + row), (u32)a.key[1], (u32)a.name};
	philox(w, (u32)a.key[0], (u32)((u64)a.key[0] >> 32));
	double z[4];`)
	switch op.Dist {
	case graph.Normal:
		s.line("\tboxMuller(w[0], w[1], z);\n\tboxMuller(w[2], w[3], z + 2);")
	case graph.Uniform:
		s.line("\tfor (int j = 0; j < 4; j++)\n\t\tz[j] = uniform(w[j]);")
	default:
		s.line("\tfor (int j = 0; j < 4; j++)\n\t\tz[j] = (w[j] & 1) ? 1 : -1;")
	}
	s.line("\tUNROLL\n\tfor (int j = 0; j < 4; j++)\n\t\tif (block * 4 + j < (idx)a.columns)\n\t\t\ta.y[row * (idx)a.columns + block * 4 + j] = %s;\n}", stored(y.dtype, "double", "z[j]"))
	l, err := s.launch("draw", blocks(rows*perRow))
	return []Launch{l}, err
}

// iota writes the index along an axis.
func (m *making) iota(op graph.Iota) ([]Launch, error) {
	y := m.operands(m.s.Out)[0]
	n := y.dims.Len()
	s := &source{wide: m.wideFor(n)}
	s.pointer(ctype(y.dtype), "y", y.value)
	s.int("n", n)
	s.quot("inner", y.dims.Strides().At(op.Axis))
	s.quot("extent", y.dims.At(op.Axis))
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	s.line("\tconst idx q = QUOT(p, a.inner);\n\tconst i64 i = q - QUOT(q, a.extent) * (idx)a.extent.d;\n\ta.y[p] = %s;\n}", stored(y.dtype, "i64", "i"))
	l, err := s.launch("iota", blocks(n))
	return []Launch{l}, err
}
