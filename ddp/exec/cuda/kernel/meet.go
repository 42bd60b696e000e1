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

// again is how partial results of a are added up.
func again(a accumulator) accumulator {
	if a.how == squared {
		a.how = summed
	}
	return a
}

// How a block adds up what its threads have, in shared memory:
//
//	sh[number][thread]   the threads ty of a result are halved until 16 are left (tree),
//	                     which one thread adds up: a number each (added)
//	a.segmented          that is left for others, numbers next to each other, or is the result
//
// and the last of so many blocks what they have left: all of its threads load, several of a
// number (parts), which then are added up in shared memory.

// serial is how many threads' numbers one thread adds up one after the other: a halving
// costs a barrier, as much as some of these.
const serial = 16

// run is neighbouring accumulators that are added up alike: width numbers each.
type run struct {
	acc            accumulator
	first, numbers int
}

// runs are the accumulators' of the kernel.
func (r *reduction) runs(width int) (all []run) {
	for i, a := range r.acc {
		a = again(a)
		if n := len(all) - 1; n >= 0 && all[n].acc.how == a.how {
			all[n].numbers += width
			continue
		}
		all = append(all, run{a, i * width, width})
	}
	return all
}

// tree adds up what the threads ty of a result have, in shared memory, until no more than
// serial are left of each.
func (r *reduction) tree(t string, width int) {
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
	each("\t", put("\t"))
	r.line("\tfor (int d = (int)a.ty.d / 2; d >= %d; d /= 2) {\n\t\tSYNC();\n\t\tif (ty < d && tz < (int)a.tz) {", serial)
	body := ""
	for i, a := range r.acc {
		body += "\n\t\t\t\t" + into(again(a), fmt.Sprintf("s%d[j]", i), slot(i, "TID + d * (int)a.tx.d"), t)
	}
	each("\t\t\t", body+put("\t\t\t"))
	r.line("\t\t}\n\t}")
}

// added adds up what lies in shared memory of each number of a run: so many values (count),
// step apart, the first at from, which is declared for number f. A thread does a number, x,
// and put says where it goes.
func (r *reduction) added(indent, t string, u run, from, count, step, put string) {
	r.line("%sfor (int f = TID; f < %d * slots; f += %d) {", indent, u.numbers, Block)
	for _, l := range []string{
		from, t + " x = sh[from];", "UNROLL4", "for (int k = 1; k < " + count + "; k++)",
		"\t" + into(u.acc, "x", "sh[from + k * "+step+"]", t), put,
	} {
		r.line("%s\t%s", indent, l)
	}
	r.line("%s}", indent)
}

// block adds up what the threads of a block have; put says where a number goes.
func (r *reduction) block(t string, width int, put func(u run) string) {
	r.tree(t, width)
	r.line("\tSYNC();\n\tconst int rows = (int)a.ty.d < %d ? (int)a.ty.d : %[1]d;", serial)
	for _, u := range r.runs(width) {
		from := fmt.Sprintf("const int q = quot32(f, a.slots), z = quot32(f - q * slots, a.tx), from = (%d + q) * %d + z * (int)(a.ty.d * a.tx.d) + f - q * slots - z * (int)a.tx.d;", u.first, Block)
		r.added("\t", t, u, from, "rows", "(int)a.tx.d", put(u))
	}
}

// alone is how a block that has all of its results adds up: they are the first thread ty's.
func (r *reduction) alone(t string, width int) {
	r.line("\tconst int slots = a.slots.d;")
	r.block(t, width, func(run) string { return "sh[from] = x;" })
	r.line("\tSYNC();\n\tUNROLL\n\tfor (int j = 0; j < %d; j++) {", width)
	for i := range r.acc {
		r.line("\t\ts%d[j] = sh[%d + j * %d + TID];", i, i*width*Block, Block)
	}
	r.line("\t}")
}

// meet adds up what the threads of all segments have: in rounds, in each of which a block
// leaves its numbers and all but the last of its neighbours end. These are of the
// segments from first on, so many (count), at multiples of step.
func (r *reduction) meet(t string, width int) {
	numbers := len(r.acc) * width
	left := func(at string, u run) string {
		return fmt.Sprintf("a.segmented[((ob * (idx)a.segments.d + %s) * (idx)a.tiles.d + tile) * (%d * slots) + %d * slots + f]", at, numbers, u.first)
	}
	r.line("\tconst int slots = a.slots.d;\n\tidx at = segment, step = 1, left = a.segments.d;")
	r.line("\tu32 *arrived = a.arrived + (ob * (idx)a.tiles.d + tile) * (idx)a.perCell;")
	r.block(t, width, func(u run) string { return left("at", u) + " = x;" })
	r.line("\tfor (;;) {")
	r.line("\t\tconst idx group = at / step / (idx)a.fan, first = group * (idx)a.fan, count = left - first < (idx)a.fan ? left - first : (idx)a.fan;")
	r.line("\t\tif (!LAST(arrived + group, (u32)count))\n\t\t\treturn;")
	for i, u := range r.runs(width) {
		r.line("\t\t{\n\t\t\tconst int wide = a.wide%d.d, parts = a.parts%[1]d, part = quot32(TID, a.wide%[1]d);", i)
		r.line("\t\t\tfor (int f = TID - part * wide; part < parts && f < %d * slots; f += wide) {\n\t\t\t\t%s x = %s;", u.numbers, t, none(u.acc, t))
		r.line("\t\t\t\tUNROLL8\n\t\t\t\tfor (idx k = part; k < count; k += parts)\n\t\t\t\t\t%s", into(u.acc, "x", left("(first + k) * step", u), t))
		r.line("\t\t\t\tsh[%d + part * (%d * slots) + f] = x;\n\t\t\t}\n\t\t}", u.first*Block, u.numbers)
	}
	r.line("\t\tSYNC();\n\t\tat = first * step, step *= (idx)a.fan, left = (left + (idx)a.fan - 1) / (idx)a.fan, arrived += left;")
	for i, u := range r.runs(width) {
		r.added("\t\t", t, u, fmt.Sprintf("const int from = %d + f;", u.first*Block), fmt.Sprintf("a.parts%d", i), fmt.Sprintf("(%d * slots)", u.numbers),
			"if (left > 1)\n\t\t\t\t"+left("at", u)+" = x;\n\t\t\telse\n\t\t\t\tsh[from] = x;")
	}
	r.line("\t\tif (left == 1)\n\t\t\tbreak;\n\t}\n\tSYNC();\n\tUNROLL\n\tfor (int j = 0; j < %d; j++) {", width)
	for _, u := range r.runs(width) {
		for at := 0; at < u.numbers; at += width {
			r.line("\t\ts%d[j] = sh[%d + (%d + j) * slots + tz * (int)a.tx.d + tx];", (u.first+at)/width, u.first*Block, at)
		}
	}
	r.line("\t}")
}

// parts is how many threads share the partial results of a number of the run, and wide how
// many numbers the threads of a block do at once.
func (r *reduction) parts(u run) (wide, parts int) {
	wide = min(u.numbers*r.tx*r.tz, Block)
	return wide, min(Block/wide, r.fan)
}
