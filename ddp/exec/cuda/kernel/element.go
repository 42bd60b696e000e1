package kernel

import (
	"fmt"
	"strings"

	"ebtrain/ddp/graph"
)

// ctype is the type of an element in memory.
func ctype(d graph.DType) string {
	switch d {
	case graph.F32:
		return "float"
	case graph.F64:
		return "double"
	case graph.BF16:
		return "bf16"
	case graph.I32:
		return "i32"
	case graph.I64:
		return "i64"
	}
	return "u8"
}

// register is the type that numbers of type d are computed in: integers in i64,
// bfloat16 in float.
func register(d graph.DType) string {
	switch d {
	case graph.F32, graph.BF16:
		return "float"
	case graph.F64:
		return "double"
	}
	return "i64"
}

// loaded is an expression for the element x, of type d in memory, as a register.
func loaded(d graph.DType, reg, x string) string {
	switch {
	case d == graph.BF16:
		x = "fromBF16(" + x + ")"
	case ctype(d) == reg:
		return x
	}
	if d == graph.BF16 && reg == "float" {
		return x
	}
	return "(" + reg + ")" + x
}

// stored is an expression for the register x, of type reg, as an element of type d:
// rounded to nearest, integers wrapped around.
func stored(d graph.DType, reg, x string) string {
	switch {
	case ctype(d) == reg:
		return x
	case d == graph.BF16 && reg == "float":
		return "toBF16(" + x + ")"
	case d == graph.BF16:
		return "toBF16((float)(" + x + "))"
	case d == graph.F32 || d == graph.F64 || reg == "i64":
		return "(" + ctype(d) + ")(" + x + ")"
	}
	return "(" + ctype(d) + ")TOINT(" + x + ")"
}

// words are the names of the 32-bit words of a vector of that many bytes.
func words(bytes int) []string {
	var w []string
	for v := range ceil(bytes, 16) {
		for _, f := range "xyzw"[:min(4, bytes/4)] {
			w = append(w, fmt.Sprintf("v%d.%c", v, f))
		}
	}
	if bytes == 4 {
		return []string{"v0"}
	}
	return w
}

// vector is the type of a piece of so many bytes.
func vector(bytes int) string {
	switch min(bytes, 16) {
	case 16:
		return "uint4"
	case 8:
		return "uint2"
	}
	return "u32"
}

// vectors says whether n elements of type d can be moved at once: as whole words.
func vectors(d graph.DType, n int) bool {
	b := n * d.Size()
	return n > 1 && (b == 4 || b == 8 || b%16 == 0)
}

// loader adds the function that loads n elements of type d, at an address that is a
// multiple of their size in all, or of 16, to registers; it returns its name.
func (s *source) loader(d graph.DType, reg string, n int) string {
	name, bytes := fmt.Sprintf("load%d_%s_%s", n, ctype(d), reg), n*d.Size()
	var b strings.Builder
	fmt.Fprintf(&b, "DEVICE void %s(%s *r, const %s *p) {\n\tALIGNED(p, %d);\n", name, reg, ctype(d), min(bytes, 16))
	for v := range ceil(bytes, 16) {
		fmt.Fprintf(&b, "\tconst %s v%d = ((const %[1]s *)p)[%[2]d];\n", vector(bytes), v)
	}
	w := words(bytes)
	for i := range n {
		var x string
		switch d.Size() {
		case 8:
			x = fmt.Sprintf("(%s | (u64)%s << 32)", w[2*i], w[2*i+1])
			if d == graph.F64 {
				x = "BITSF64" + x
			} else {
				x = "(i64)" + x
			}
		case 4:
			if x = "(i32)" + w[i]; d == graph.F32 {
				x = "BITSF32(" + w[i] + ")"
			}
		case 2:
			x = fmt.Sprintf("(bf16)(%s >> %d)", w[i/2], i%2*16)
		default:
			x = fmt.Sprintf("(u8)(%s >> %d)", w[i/4], i%4*8)
		}
		fmt.Fprintf(&b, "\tr[%d] = %s;\n", i, loaded(d, reg, x))
	}
	s.helper(b.String() + "}\n")
	return name
}

// storer adds the function that stores n registers, as loader does for loads.
func (s *source) storer(d graph.DType, reg string, n int) string {
	name, bytes := fmt.Sprintf("store%d_%s_%s", n, ctype(d), reg), n*d.Size()
	var b strings.Builder
	fmt.Fprintf(&b, "DEVICE void %s(%s *p, const %s *r) {\n\tALIGNED(p, %d);\n", name, ctype(d), reg, min(bytes, 16))
	for v := range ceil(bytes, 16) {
		fmt.Fprintf(&b, "\t%s v%d;\n", vector(bytes), v)
	}
	for i, w := range words(bytes) {
		r := func(k int) string { return stored(d, reg, fmt.Sprintf("r[%d]", k)) }
		switch {
		case d.Size() == 8 && d == graph.F64:
			fmt.Fprintf(&b, "\t%s = (u32)(F64BITS(%s) >> %d);\n", w, r(i/2), i%2*32)
		case d.Size() == 8:
			fmt.Fprintf(&b, "\t%s = (u32)((u64)(%s) >> %d);\n", w, r(i/2), i%2*32)
		case d == graph.F32:
			fmt.Fprintf(&b, "\t%s = F32BITS(%s);\n", w, r(i))
		case d.Size() == 4:
			fmt.Fprintf(&b, "\t%s = (u32)(%s);\n", w, r(i))
		case d.Size() == 2:
			fmt.Fprintf(&b, "\t%s = BF16X2((float)r[%d], (float)r[%d]);\n", w, 2*i, 2*i+1)
		default:
			fmt.Fprintf(&b, "\t%s = (u32)(%s) | (u32)(%s) << 8 | (u32)(%s) << 16 | (u32)(%s) << 24;\n", w, r(4*i), r(4*i+1), r(4*i+2), r(4*i+3))
		}
	}
	for v := range ceil(bytes, 16) {
		fmt.Fprintf(&b, "\t((%s *)p)[%d] = v%[2]d;\n", vector(bytes), v)
	}
	s.helper(b.String() + "}\n")
	return name
}
