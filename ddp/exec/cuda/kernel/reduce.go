package kernel

import (
	"fmt"
	"slices"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// accumulator is a sum, a sum of squares or a maximum of a register over some points.
type accumulator struct {
	reg int
	how how
}

type how uint8

const (
	summed how = iota
	squared
	greatest
)

// accumulators are what reduction r needs: a centred sum of squares is Σx² − (Σx)²/n,
// in float64.
func accumulators(r plan.Reduction) []accumulator {
	switch {
	case r.Centred:
		return []accumulator{{r.Reg, summed}, {r.Reg, squared}}
	case r.Fn == graph.ReduceMax:
		return []accumulator{{r.Reg, greatest}}
	}
	return []accumulator{{r.Reg, summed}}
}

// class is reductions of a group that are made by one kernel. To it the iteration
// space is
//
//	(outer, middle, columns)     columns > 1 and kept, or
//	(outer, middle)              with neighbours in the middle axis,
//
// and each of its reductions runs over the middle axis at least.
type class struct {
	outer, middle, columns int
	sums                   []int // by number in the group
	acc                    []accumulator
}

// trailing is the middle axis and the columns of one reduction: its last two axes.
func trailing(a plan.Access) (middle, columns int) {
	last := len(a.Dims) - 1
	if a.Strides[last] == 0 {
		return a.Dims[last], 1
	}
	return a.Dims[last-1], a.Dims[last]
}

// classes groups the reductions of f, over n points. Reductions that share columns
// share a class; one to a single number joins any. Partial results of a class are as
// many as its outer axis and columns have elements, so they must be few.
func classes(f *plan.Fused, n int) (all []*class) {
	for _, i := range scalarsLast(f.Sums) {
		r := f.Sums[i]
		middle, columns := trailing(r.Access)
		k := slices.IndexFunc(all, func(c *class) bool {
			m := min(middle, c.middle)
			fits := c.columns == columns && (c.middle == middle || m >= 64) || r.Scalar() && c.middle >= 64
			return fits && len(c.acc) < maxAccumulators-1
		})
		if k < 0 {
			all = append(all, &class{middle: middle, columns: columns})
			k = len(all) - 1
		}
		c := all[k]
		c.sums = append(c.sums, i)
		if c.columns == columns {
			c.middle = min(c.middle, middle)
		}
		for _, a := range accumulators(r) {
			if !slices.Contains(c.acc, a) {
				c.acc = append(c.acc, a)
			}
		}
	}
	for _, c := range all {
		c.outer = n / (c.middle * c.columns)
	}
	return all
}

// scalarsLast are the numbers of reductions in order, those to a single number last.
func scalarsLast(sums []plan.Reduction) (order []int) {
	for _, last := range []bool{false, true} {
		for i, r := range sums {
			if r.Scalar() == last {
				order = append(order, i)
			}
		}
	}
	return order
}

// maxAccumulators bounds those of a kernel: each takes 2 KiB of shared memory for each of a
// thread's neighbouring results. maxShared is what they take at most: of a block's 48 KiB,
// finishing takes 4, and counting blocks a word.
const (
	maxAccumulators = 16
	maxShared       = 40 << 10
)

// reducing makes the kernels of a group with reductions: one for each class, the last
// of which stores the results too, so that none before has lost an operand to a
// result. Where partial results are many there is one more, which finishes them.
func (m *making) reducing(f *plan.Fused, in, out []operand) ([]Launch, error) {
	n := f.Dims.Len()
	if n == 0 {
		return m.reduceNothing(f, out)
	}
	var launches []Launch
	var later finish
	all := classes(f, n)
	for i, c := range all {
		r := m.newReduction(f, in, out, c, i == len(all)-1)
		if r.outer*r.columns > lastFinishes || len(r.rest.entries) > mostWithin {
			later.entries, r.rest.entries = append(later.entries, r.rest.entries...), nil
		}
		l, err := r.launchAll()
		if err != nil {
			return nil, err
		}
		l.Counters = 4 * m.counters
		launches = append(launches, l)
	}
	more, err := later.launches()
	for i := range more {
		more[i].Counters = 4 * m.counters
	}
	return append(launches, more...), err
}

// lastFinishes is how many partial results of a reduction the last block of a kernel
// finishes at most, as it is alone then, and mostWithin of how many reductions, as they
// take room in the argument; beyond, a second launch is better.
const lastFinishes, mostWithin = 1 << 13, 4

// reduceNothing fills the results of reductions over no points.
func (m *making) reduceNothing(f *plan.Fused, out []operand) (all []Launch, err error) {
	for _, y := range out[len(f.Stores):] {
		if y.dims.Len() > 0 {
			l, err := m.fused(filling(y.dtype, y.dims, 0), nil, []operand{y})
			if err != nil {
				return nil, err
			}
			all = append(all, l...)
		}
	}
	return all, nil
}

// reduction is the kernel of a class. A block has TX·TY·TZ threads at work: TX lie along the columns,
// V each; TY share the middle axis; TZ are at different outer indices. What the TY
// have added up is added in a tree.
//
//	               columns: tiles of TX·V
//	outer ┌ middle ┌──┬──┬──┐
//	      │        │ty│  │  │ segment 0
//	      │        ├──┼──┼──┤
//	      │        │  │  │  │ segment 1
//
// Long middle axes are cut into segments of a block each. What blocks have added up goes
// to scratch memory, and of so many neighbouring segments (fan) the block that ends last
// adds it up, in their order; again until one block has all of a tile. Results that more
// than the middle axis goes into are then finished by the block that ends last of all. So
// which block is last decides nothing but who does the work.
type reduction struct {
	*pointwise
	*class
	outs                        []operand // of the group's reductions
	tx, ty, tz, tiles, segments int
	length                      int   // of a segment
	fan                         int   // segments that one block adds up
	segmented, arrived, over    int   // scratch memory, counters of segments and of all tiles
	part                        []int // by accumulator: where what is not final yet lies
	final                       []bool
	rest                        finish
}

// newReduction decides how a class's kernel divides its work. That depends on the group
// alone, its extents, types and results: equal groups have equal bits, wherever they lie
// and on any device. (In a deterministic program a reduction is a group of its own.)
func (m *making) newReduction(f *plan.Fused, in, out []operand, c *class, store bool) *reduction {
	n := f.Dims.Len()
	V := widest(f, in, out, n)
	along := c.columns // the axis that neighbours lie on
	if c.columns == 1 {
		along = c.middle
	} else {
		V = min(V, max(2, 8/len(c.acc)), maxShared/(8*Block*len(c.acc)))
	}
	for along%V != 0 {
		V /= 2
	}
	r := &reduction{class: c, outs: out[len(f.Stores):]}
	r.pointwise = newPointwise(f, in, out, V, store, m.wideFor(n))
	r.divide()
	for _, i := range c.sums {
		r.final = append(r.final, r.outs[i].dims.Len() == c.outer*c.columns)
	}
	r.part = slices.Repeat([]int{-1}, len(c.acc))
	for i, sum := range c.sums {
		if !r.final[i] {
			for _, a := range accumulators(f.Sums[sum]) {
				if k := slices.Index(c.acc, a); r.part[k] < 0 {
					r.part[k] = m.take(8 * c.outer * c.columns)
				}
			}
			r.rest.entries = append(r.rest.entries, r.finishing(sum))
		}
	}
	if r.segments > 1 {
		r.segmented = m.take(8 * r.cells() * r.segments * r.perBlock())
		r.arrived = m.count(r.cells() * r.perCell())
	}
	if len(r.rest.entries) > 0 {
		r.over = m.count(1)
	}
	return r
}

// accType is the type that a group's reductions are added up in.
func accType(reg string) string {
	if reg == "i64" {
		return "i64"
	}
	return "double"
}

// launchAll writes the kernel.
func (r *reduction) launchAll() (Launch, error) {
	r.arguments()
	t, width := accType(r.reg), r.width()
	head := "KERNEL_SYNC"
	if r.segments > 1 && !r.stores() { // some 512 blocks, four for a multiprocessor of a large device
		head = "KERNEL_FOUR"
	}
	r.line("%s(NAME, %d, struct NAME_args) {", head, Block)
	r.line("\tSHARED(%s, sh, [%d]);", t, len(r.acc)*width*Block)
	if len(r.rest.entries) > 0 {
		r.line("\tSHARED(double, sum, [%d]);\n\tSHARED(double, square, [%[1]d]);", Block)
	}
	r.line("\tconst int t = quot32(TID, a.tx), tx = TID - t * (int)a.tx.d, tz = quot32(t, a.ty), ty = t - tz * (int)a.ty.d;")
	r.line("\tconst idx u = QUOT(BID, a.tiles), tile = BID - u * (idx)a.tiles.d, ob = QUOT(u, a.segments), segment = u - ob * (idx)a.segments.d;")
	r.line("\tconst idx o = ob * (idx)a.tz + tz;")
	alive := "tz < (int)a.tz && o < (idx)a.outer"
	if r.columns > 1 {
		r.line("\tconst idx c = (tile * (idx)a.tx.d + tx) * %d;", r.V)
		alive += " && c < (idx)a.columns"
	}
	r.line("\tconst int alive = %s;", alive)
	for i, a := range r.acc {
		r.line("\t%s s%d[%d];\n\tUNROLL\n\tfor (int j = 0; j < %[3]d; j++)\n\t\ts%[2]d[j] = %[4]s;", t, i, width, none(a, t))
	}
	r.line("\tif (alive) {\n\t\tconst idx from = segment * (idx)a.length, end = from + (idx)a.length < (idx)a.steps ? from + (idx)a.length : (idx)a.steps;")
	r.along(t)
	r.line("\t\t}\n\t}")
	if r.segments > 1 {
		r.meet(t, width)
	} else {
		r.alone(t, width)
	}
	r.results(t, width)
	if n := len(r.rest.entries); n > 0 {
		r.line("\tif (!LAST(a.over, a.cells))\n\t\treturn;")
		r.line("\tfor (int k = 0; k < %d; k++)\n\t\tfor (int b = 0; b < a.e[k].blocks; b++) {", n)
		r.line("\t\t\tfinishBlock(&a.e[k], b, sum, square);\n\t\t\tSYNC();\n\t\t}")
	}
	r.line("}")
	return r.launch("reduce", r.tiles*r.segments*ceil(r.outer, r.tz))
}

// arguments declares what the kernel needs besides the group's arguments.
func (r *reduction) arguments() {
	r.quot("tx", r.tx)
	r.quot("ty", r.ty)
	r.quot("tiles", r.tiles)
	r.quot("segments", r.segments)
	r.int("tz", r.tz)
	r.int("outer", r.outer)
	r.int("columns", r.columns)
	r.int("steps", r.steps())
	r.int("length", r.length)
	r.quot("slots", r.tx*r.tz)
	if r.segments > 1 {
		r.scratch(accType(r.reg), "segmented", r.segmented)
		r.counter("arrived", r.arrived)
		r.small("fan", r.fan)
		r.small("perCell", r.perCell())
		for i, u := range r.runs(r.width()) {
			wide, parts := r.parts(u)
			r.quot(fmt.Sprintf("wide%d", i), wide)
			r.small(fmt.Sprintf("parts%d", i), parts)
		}
	}
	if len(r.rest.entries) > 0 {
		r.counter("over", r.over)
		r.small("cells", r.cells())
		r.rest.within(&r.source)
	}
	for i, at := range r.part {
		if at >= 0 {
			r.scratch(accType(r.reg), fmt.Sprintf("part%d", i), at)
		}
	}
	for i, sum := range r.sums {
		if r.final[i] {
			r.pointer(ctype(r.outs[sum].dtype), fmt.Sprintf("sum%d", sum), r.outs[sum].value)
			if r.f.Sums[sum].Centred {
				r.double(fmt.Sprintf("n%d", sum), float64(r.middle))
			}
		}
	}
}

// none is the result of nothing.
func none(a accumulator, t string) string {
	switch {
	case a.how == greatest && t == "i64":
		return "(i64)((u64)1 << 63)"
	case a.how == greatest:
		return "BITSF64(0xfff0000000000000ULL)"
	}
	return "0"
}

// into is the statement that adds x, of type t, to s.
func into(a accumulator, s, x, t string) string {
	switch {
	case a.how == greatest && t == "i64":
		return fmt.Sprintf("%s = maxL(%[1]s, %s);", s, x)
	case a.how == greatest:
		return fmt.Sprintf("%s = maxD(%[1]s, %s);", s, x)
	case a.how == squared:
		return fmt.Sprintf("%s = FMA(%s, %[2]s, %[1]s);", s, x)
	case t == "i64":
		return fmt.Sprintf("%s = (i64)((u64)%[1]s + (u64)%s);", s, x)
	}
	return fmt.Sprintf("%s += %s;", s, x)
}

// results writes partial and final results: those of the first thread ty.
func (r *reduction) results(t string, width int) {
	if len(r.rest.entries) > 0 { // all threads are needed
		r.line("\tUNROLL\n\tfor (int j = 0; j < %d && alive && ty == 0; j++) {", width)
	} else {
		r.line("\tif (!alive || ty > 0)\n\t\treturn;\n\tUNROLL\n\tfor (int j = 0; j < %d; j++) {", width)
	}
	column := ""
	if r.columns > 1 {
		column = " * (idx)a.columns + c + j"
	}
	for i, at := range r.part {
		if at >= 0 {
			r.line("\t\ta.part%d[o%s] = s%[1]d[j];", i, column)
		}
	}
	for i, sum := range r.sums {
		if !r.final[i] {
			continue
		}
		acc := accumulators(r.f.Sums[sum])
		x := fmt.Sprintf("s%d[j]", slices.Index(r.acc, acc[0]))
		if len(acc) == 2 {
			x = fmt.Sprintf("maxD(0, s%d[j] - %s * %[2]s / a.n%d)", slices.Index(r.acc, acc[1]), x, sum)
		}
		r.line("\t\ta.sum%d[o%s] = %s;", sum, column, stored(r.outs[sum].dtype, t, x))
	}
	r.line("\t}")
}
