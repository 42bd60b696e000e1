package kernel

import "fmt"

// along writes the loop along the middle axis, but for its end. A loop that adds up what it
// has just loaded waits for the memory each time; so several steps are loaded at once: by the
// compiler, or, as it has to mind that a result may take an operand's place, by the text,
// which need not: nobody else reads the numbers at a step's points.
func (r *reduction) along(t string) {
	add := func(indent string) {
		at := "j"
		if r.columns == 1 {
			at = "0"
		}
		for i, a := range r.acc {
			r.line("%s%s", indent, into(a, fmt.Sprintf("s%d[%s]", i, at), fmt.Sprintf("(%s)r%d", t, a.reg), t))
		}
	}
	point := func(m string) string {
		if r.columns > 1 {
			return fmt.Sprintf("(o * (idx)a.steps + %s) * (idx)a.columns + c", m)
		}
		return fmt.Sprintf("(o * (idx)a.steps + %s) * %d", m, r.V)
	}
	n := r.ahead()
	if n == 1 || !r.stores() {
		if n > 1 {
			r.line("\t\tUNROLL%d", n)
		}
		r.line("\t\tfor (idx m = from + ty; m < end; m += (idx)a.ty.d) {\n\t\t\tconst idx p = %s;", point("m"))
		r.points("\t\t\t", add)
		return
	}
	r.line("\t\tfor (idx first = from + ty; first < end; first += %d * (idx)a.ty.d) {", n)
	for i := range r.loads {
		r.declare(i, "\t\t\t", fmt.Sprintf("[%d]", n))
	}
	r.of = "[k]"
	r.line("\t\t\tUNROLL\n\t\t\tfor (int k = 0; k < %d; k++) {", n)
	r.line("\t\t\t\tconst idx next = first + k * (idx)a.ty.d, p = %s;", point("(next < end ? next : first)"))
	for i := range r.loads {
		r.load(i, "\t\t\t\t")
	}
	r.line("\t\t\t}\n\t\t\tUNROLL\n\t\t\tfor (int k = 0; k < %d; k++) {\n\t\t\t\tconst idx m = first + k * (idx)a.ty.d;", n)
	r.line("\t\t\t\tif (m >= end)\n\t\t\t\t\tbreak;")
	r.line("\t\t\t\tconst idx p = %s;", point("m"))
	r.compute("\t\t\t\t", add)
	r.line("\t\t\t}")
}

// ahead is of how many steps the operands are loaded at once: as many as a thread does, up
// to 8, and as fit registers.
func (r *reduction) ahead() int {
	full, size := 0, 0
	for i, l := range r.loads {
		if r.f.Loads[i].Full() {
			full++
		}
		if l.mode == singleMode {
			size++
		} else {
			size += r.V
		}
	}
	if r.reg != "float" {
		size *= 2
	}
	each, most := ceil(r.length, r.ty), 8
	if !r.stores() { // what is left of a thread's steps is done one by one
		size = 1
		most = map[int]int{0: 1, 1: 8, 2: 2}[full]
		if each%8 != 0 {
			most = min(most, 4)
		}
	}
	n := 1
	for 2*n <= min(most, each) && 2*n*size <= mostAhead {
		n *= 2
	}
	return n
}

// stores says whether the kernel has results besides the reductions'.
func (r *reduction) stores() bool { return r.store && len(r.f.Stores) > 0 }

// mostAhead is how many registers of four bytes are filled ahead.
const mostAhead = 40
