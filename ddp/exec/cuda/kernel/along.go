package kernel

import "fmt"

// along writes the loop along the middle axis, but for its end. A loop that adds up what it
// has just loaded waits for the memory each time; so several steps are loaded at once: by the
// compiler, or by the text, which need not mind that a result may take an operand's place, as
// nobody else reads the numbers at a step's points.
func (r *reduction) along(t string) {
	r.before()
	n := r.ahead()
	if n > 1 && r.stores() {
		r.atOnce(t, n)
		return
	}
	if n > 1 {
		r.line("\t\tUNROLL%d", n)
	}
	r.line("\t\tfor (idx m = from + ty; m < end; m += (idx)a.ty.d) {\n\t\t\tconst idx p = %s;", r.point("m"))
	r.points("\t\t\t", func(indent string) { r.add(indent, t) })
}

// add writes the lines that add up a point.
func (r *reduction) add(indent, t string) {
	at := "j"
	if r.columns == 1 {
		at = "0"
	}
	for i, a := range r.acc {
		r.line("%s%s", indent, into(a, fmt.Sprintf("s%d[%s]", i, at), fmt.Sprintf("(%s)r%d", t, a.reg), t))
	}
}

// atOnce writes a loop whose steps are loaded n at once.
func (r *reduction) atOnce(t string, n int) {
	r.line("\t\tfor (idx first = from + ty; first < end; first += %d * (idx)a.ty.d) {", n)
	for i := range r.loads {
		if !r.loads[i].before {
			r.declare(i, "\t\t\t", fmt.Sprintf("[%d]", n))
		}
	}
	r.of = "[k]"
	r.line("\t\t\tUNROLL\n\t\t\tfor (int k = 0; k < %d; k++) {", n)
	r.line("\t\t\t\tconst idx next = first + k * (idx)a.ty.d, p = %s;", r.point("(next < end ? next : first)"))
	for i := range r.loads {
		if !r.loads[i].before {
			r.load(i, "\t\t\t\t")
		}
	}
	r.line("\t\t\t}")
	r.line("\t\t\tUNROLL\n\t\t\tfor (int k = 0; k < %d; k++) {\n\t\t\t\tconst idx m = first + k * (idx)a.ty.d;", n)
	r.line("\t\t\t\tif (m >= end)\n\t\t\t\t\tbreak;")
	r.line("\t\t\t\tconst idx p = %s;", r.point("m"))
	r.compute("\t\t\t\t", func(indent string) { r.add(indent, t) })
	r.line("\t\t\t}")
}

// point is the first point of step m.
func (r *reduction) point(m string) string {
	if r.columns > 1 {
		return fmt.Sprintf("(o * (idx)a.steps + %s) * (idx)a.columns + c", m)
	}
	return fmt.Sprintf("(o * (idx)a.steps + %s) * %d", m, r.V)
}

// before loads what is the same at all steps of a thread: numbers, and one for each column.
// No result takes the place of those. They are kept in registers, of which there are some.
func (r *reduction) before() {
	left := mostBefore
	for i, a := range r.f.Loads {
		column := r.columns > 1 && len(a.Dims) == 2 && a.Strides[0] == 0 && a.Strides[1] == 1 && a.Dims[1] == r.columns
		size := 1
		if column {
			size = r.V
		}
		if !column && !a.Scalar() || size > left {
			continue
		}
		left -= size
		r.declare(i, "\t\t", "")
		r.line("\t\t{\n\t\t\tconst idx p = %s;", r.first())
		r.load(i, "\t\t\t")
		r.line("\t\t}")
		r.loads[i].before = true
	}
}

// first is a thread's first column.
func (r *reduction) first() string {
	if r.columns > 1 {
		return "c"
	}
	return "0"
}

// ahead is of how many steps the operands are loaded at once: as many as a thread does, up
// to 8, and as fit registers: converted where the text loads them, as they lie where the
// compiler does.
func (r *reduction) ahead() int {
	full, size, packed := 0, 0, 0
	for i, l := range r.loads {
		switch {
		case l.before:
		case l.mode == singleMode:
			size++
			packed++
		default:
			size += r.V
			packed += max(1, r.V*r.in[i].dtype.Size()/4)
			full++
		}
	}
	if r.reg != "float" {
		size *= 2
	}
	each, most, room := ceil(r.length, r.ty), 8, mostAhead
	if !r.stores() { // what is left of a thread's steps is done one by one
		size, room = packed, mostPacked
		switch full {
		case 0:
			most = 1
		case 1:
			room *= 2
		}
		if each%8 != 0 || full > 1 {
			most = min(most, 4)
		}
	}
	n := 1
	for 2*n <= min(most, each) && 2*n*size <= room {
		n *= 2
	}
	return n
}

// stores says whether the kernel has results besides the reductions'.
func (r *reduction) stores() bool { return r.store && len(r.f.Stores) > 0 }

// How many registers of four bytes are filled before the loop, and ahead in it: with numbers
// as they are computed with, and as they lie.
const mostBefore, mostAhead, mostPacked = 16, 40, 16
