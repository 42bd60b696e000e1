package kernel

import "fmt"

// cells is how many blocks there are but for segments.
func (r *reduction) cells() int { return r.tiles * ceil(r.outer, r.tz) }

// width is how many neighbouring results a thread adds up.
func (r *reduction) width() int {
	if r.columns == 1 {
		return 1
	}
	return r.V
}

// perBlock is how many numbers a block adds up.
func (r *reduction) perBlock() int { return len(r.acc) * r.width() * r.tx * r.tz }

// perCell is how many counters the segments of a cell have: one for each of what is
// added up at once.
func (r *reduction) perCell() (n int) {
	for left := r.segments; left > 1; {
		left = ceil(left, r.fan)
		n += left
	}
	return n
}

// tree adds up what the threads ty of a result have, in shared memory.
func (r *reduction) tree(indent, t string, width int) {
	slot := func(i int, at string) string { return fmt.Sprintf("sh[%d + j * %d + %s]", i*width*Block, Block, at) }
	each := func(indent, body string) {
		r.line("%sUNROLL\n%[1]sfor (int j = 0; j < %d; j++) {%s\n%[1]s}", indent, width, body)
	}
	put := func(indent string) (body string) {
		for i := range r.acc {
			body += fmt.Sprintf("\n%s\t%s = s%d[j];", indent, slot(i, "TID"), i)
		}
		return body
	}
	each(indent, put(indent))
	r.line("%sfor (int d = (int)a.ty.d / 2; d > 0; d /= 2) {\n%[1]s\tSYNC();\n%[1]s\tif (ty < d && tz < (int)a.tz) {", indent)
	body := ""
	for i, a := range r.acc {
		body += "\n" + indent + "\t\t\t" + into(again(a), fmt.Sprintf("s%d[j]", i), slot(i, "TID + d * (int)a.tx.d"), t)
	}
	each(indent+"\t\t", body+put(indent+"\t\t"))
	r.line("%s\t}\n%[1]s}", indent)
}

// again is how partial results of a are added up.
func again(a accumulator) accumulator {
	if a.how == squared {
		a.how = summed
	}
	return a
}

// meet adds up what the threads of all segments have: in rounds, in each of which a block
// leaves its numbers and all but the last of its neighbours end. These are of the
// segments from first on, so many (count), at multiples of step.
func (r *reduction) meet(t string, width int) {
	number := func(i int, at string) string {
		return fmt.Sprintf("a.segmented[(((ob * (idx)a.segments.d + %s) * (idx)a.tiles.d + tile) * %d + %d + j) * (idx)a.slots + slot]", at, len(r.acc)*width, i*width)
	}
	each := func(indent string, text func(i int, a accumulator) string) {
		r.line("%sUNROLL\n%[1]sfor (int j = 0; j < %d; j++) {", indent, width)
		for i, a := range r.acc {
			r.line("%s\t%s", indent, text(i, a))
		}
		r.line("%s}", indent)
	}
	r.line("\tconst idx slot = tz * (idx)a.tx.d + tx;\n\tidx at = segment, step = 1, left = a.segments.d;")
	r.line("\tu32 *arrived = a.arrived + (ob * (idx)a.tiles.d + tile) * (idx)a.perCell;\n\tfor (;;) {")
	r.tree("\t\t", t, width)
	r.line("\t\tif (left == 1)\n\t\t\tbreak;\n\t\tif (ty == 0 && tz < (int)a.tz) {")
	each("\t\t\t", func(i int, _ accumulator) string { return fmt.Sprintf("%s = s%d[j];", number(i, "at"), i) })
	r.line("\t\t}\n\t\tconst idx group = at / step / (idx)a.fan, first = group * (idx)a.fan, count = left - first < (idx)a.fan ? left - first : (idx)a.fan;")
	r.line("\t\tif (!LAST(arrived + group, (u32)count))\n\t\t\treturn;")
	each("\t\t", func(i int, a accumulator) string { return fmt.Sprintf("s%d[j] = %s;", i, none(a, t)) })
	r.line("\t\tUNROLL4\n\t\tfor (idx k = ty; k < count && tz < (int)a.tz; k += (idx)a.ty.d) {\n\t\t\tconst idx from = (first + k) * step;")
	each("\t\t\t", func(i int, a accumulator) string {
		return into(again(a), fmt.Sprintf("s%d[j]", i), number(i, "from"), t)
	})
	r.line("\t\t}\n\t\tat = first * step, step *= (idx)a.fan, left = (left + (idx)a.fan - 1) / (idx)a.fan, arrived += left;\n\t}")
}
