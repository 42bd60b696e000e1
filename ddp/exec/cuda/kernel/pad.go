package kernel

import "ebtrain/ddp/graph"

// padAxis is an axis of a padded array: y[lo + i·step] = x[i], 0 elsewhere.
type padAxis struct{ n, lo, step, y int }

// padAxes joins axes that are not padded to the axis before them.
func padAxes(op graph.Pad, x, y graph.Shape) (all []padAxis) {
	for i := range x.Rank() {
		a := padAxis{x.At(i), op.Lo.At(i), op.Gap.At(i) + 1, y.At(i)}
		if k := len(all) - 1; k >= 0 && a.lo == 0 && a.n == a.y && all[k].step == 1 {
			b := &all[k]
			b.n, b.lo, b.y = b.n*a.n, b.lo*a.n, b.y*a.n
			continue
		}
		all = append(all, a)
	}
	if len(all) == 0 {
		all = []padAxis{{1, 0, 1, 1}}
	}
	return all
}

// pad writes all of y: an element of x, or 0.
func (m *making) pad(op graph.Pad) ([]Launch, error) {
	x, y := m.operands(m.s.In)[0], m.operands(m.s.Out)[0]
	axes := padAxes(op, x.dims, y.dims)
	s := &source{wide: m.wideFor(y.dims.Len())}
	t := map[int]string{1: "u8", 2: "u16", 4: "u32", 8: "u64"}[x.dtype.Size()]
	s.pointer("const "+t, "x", x.value)
	s.pointer(t, "y", y.value)
	s.int("n", y.dims.Len())
	s.line("KERNEL(NAME, %d, struct NAME_args) {\n\tconst idx p = (idx)BID * %[1]d + TID;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block)
	s.line("\tidx q = p, at = 0, step = 1;\n\tint inside = 1;")
	for i := len(axes) - 1; i >= 0; i-- {
		s.padAxis(i, axes[i])
	}
	s.line("\ta.y[p] = inside ? a.x[at] : 0;\n}")
	l, err := s.launch("pad", blocks(y.dims.Len()))
	return []Launch{l}, err
}

// padAxis writes the lines of axis i, which take its index from q and add to at, the
// element of x.
func (s *source) padAxis(i int, a padAxis) {
	n := string(rune('0' + i))
	s.int("n"+n, a.n)
	s.int("lo"+n, a.lo)
	if i > 0 {
		s.quot("d"+n, a.y)
		s.line("\tconst idx q%s = QUOT(q, a.d%[1]s);\n\tidx i%[1]s = q - q%[1]s * (idx)a.d%[1]s.d - (idx)a.lo%[1]s;\n\tq = q%[1]s;", n)
	} else {
		s.line("\tidx i%s = q - (idx)a.lo%[1]s;", n)
	}
	if a.step > 1 {
		s.quot("g"+n, a.step)
		s.line("\tconst idx t%s = i%[1]s < 0 ? 0 : QUOT(i%[1]s, a.g%[1]s);\n\tinside = inside && i%[1]s == t%[1]s * (idx)a.g%[1]s.d;\n\ti%[1]s = t%[1]s;", n)
	}
	s.line("\tinside = inside && i%s >= 0 && i%[1]s < (idx)a.n%[1]s;\n\tat += i%[1]s * step;\n\tstep *= (idx)a.n%[1]s;", n)
}
