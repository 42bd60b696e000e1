package kernel

import (
	"fmt"

	"ebtrain/ddp/graph"
)

// table is what indices point into, as loops see it: images of pixels of columns.
// Indices of rows are of one image, whose pixels are the rows, and each stands for all
// columns; places in planes are of an image's pixels, one index for each column.
type table struct {
	idx, few, many        operand // few has an element, or a row, for each index
	images, indices, rows int     // of an image: its indices (pixels of few), its pixels
	columns               int
	single                bool // an index for each column
}

func rowTable(idx, few, many operand) table {
	return table{idx, few, many, 1, idx.dims.Len(), many.dims.At(0), many.dims.With(0, 1).Len(), false}
}

func planeTable(idx, few, many operand) table {
	pixels := func(x operand) int { return x.dims.At(1) * x.dims.At(2) }
	return table{idx, few, many, many.dims.At(0), pixels(idx), pixels(many), many.dims.At(3), true}
}

// begin declares what gathers and scatters have in common, and the function that tells
// of an index out of range: the threads of the first do.
func (t *table) begin(m *making, few, many string) *source {
	s := &source{wide: m.wideFor(t.few.dims.Len(), t.many.dims.Len(), t.idx.dims.Len())}
	s.pointer("const i32", "idx", t.idx.value)
	s.pointer(few, "few", t.few.value)
	s.pointer(many, "many", t.many.value)
	s.int("n", t.idx.dims.Len())
	s.int("indices", t.indices)
	s.int("rows", t.rows)
	s.quot("columns", t.columns)
	s.fault(m.i)
	s.line(`DEVICE void tell(const i32 *idx, i64 at, i64 rows, i64 step, i64 *fault) {
	for (i64 i = 0; i < at; i++)
		if (idx[i] < 0 || idx[i] >= rows)
			return;
	fault[0] = step + 1;
	fault[1] = at;
	fault[2] = idx[at];
}
`)
	return s
}

// index is the number of the index of element (u, c), where u counts the pixels of all
// images' indices.
func (t *table) index() string {
	if t.single {
		return "u * (idx)a.columns.d + c"
	}
	return "u"
}

// gather sets few to what the indices point to in many: a thread an element.
func (m *making) gather(t table) ([]Launch, error) {
	e := map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "u64"}[t.few.dtype.Size()]
	s := t.begin(m, e, "const "+e)
	s.quot("perImage", t.indices)
	s.int("total", t.few.dims.Len())
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.total)\n\t\treturn;", Block)
	s.line("\tconst idx u = QUOT(p, a.columns), c = p - u * (idx)a.columns.d, k = %s;", t.index())
	s.line(`	const i32 at = a.idx[k];
	if (at < 0 || at >= a.rows) {
		tell(a.idx, k, a.rows, a.step, a.fault);
		a.few[p] = 0;
		return;
	}
	a.few[p] = a.many[(QUOT(u, a.perImage) * (idx)a.rows + at) * (idx)a.columns.d + c];
}`)
	l, err := s.launch("gather", blocks(t.few.dims.Len()))
	return []Launch{l}, err
}

// scatter adds few to what the indices point to in many, which starts at 0: a thread
// for each element of many looks at all indices of its image, in their order. So it
// takes elements × indices time, which suits tables of chains and slots; and all
// elements of one sum are added in one order, in float64 or int64.
func (m *making) scatter(t table) ([]Launch, error) {
	e, acc := ctype(t.few.dtype), accType(register(t.few.dtype))
	s := t.begin(m, "const "+e, e)
	s.quot("perImage", t.rows)
	s.int("total", t.many.dims.Len())
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;", Block)
	s.line("\tif (p < (idx)a.n && (a.idx[p] < 0 || a.idx[p] >= a.rows))\n\t\ttell(a.idx, p, a.rows, a.step, a.fault);\n\tif (p >= (idx)a.total)\n\t\treturn;")
	s.line("\tconst idx v = QUOT(p, a.columns), c = p - v * (idx)a.columns.d, image = QUOT(v, a.perImage), row = v - image * (idx)a.rows;\n\t%s sum = 0;", acc)
	add := fmt.Sprintf("sum += %s", loaded(t.few.dtype, acc, "a.few[u * (idx)a.columns.d + c]"))
	if acc == "i64" {
		add = "sum = (i64)((u64)sum + (u64)(i64)a.few[u * (idx)a.columns.d + c])"
	}
	s.line("\tfor (idx u = image * (idx)a.indices, end = u + (idx)a.indices; u < end; u++)\n\t\tif (a.idx[%s] == row)\n\t\t\t%s;", t.index(), add)
	s.line("\ta.many[p] = %s;\n}", stored(t.many.dtype, acc, "sum"))
	l, err := s.launch("scatter", blocks(max(t.many.dims.Len(), t.idx.dims.Len())))
	return []Launch{l}, err
}

// indexed makes the kernel of a gather or scatter.
func (m *making) indexed(op graph.Op) ([]Launch, error) {
	x, idx, y := m.operands(m.s.In)[0], m.operands(m.s.In)[1], m.operands(m.s.Out)[0]
	switch op.(type) {
	case graph.Gather:
		return m.gather(rowTable(idx, y, x))
	case graph.ScatterAdd:
		return m.scatter(rowTable(idx, x, y))
	case graph.PlaneGather:
		return m.gather(planeTable(idx, y, x))
	}
	return m.scatter(planeTable(idx, x, y))
}
