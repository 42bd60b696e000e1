package kernel

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

func bf16(v float64) float64 { return float64(collective.FromBF16(collective.ToBF16(float32(v)))) }

// pointwise is the text of a group's points: loads, instructions and stores of V
// neighbouring points by a thread, V being 1, 2, 4 or 8, a divisor of the points.
//
//	float x0[4];                      each operand, as registers
//	load4_float_float(x0, a.in0 + p);
//	for (int j = 0; j < 4; j++) {     each point
//	    const float r0 = x0[j], r1 = a.c0;
//	    const float r2 = r0 * r1;
//	    y0[j] = r2;
//	}
//	store4_float_float(a.out0 + p, y0);
//
// All operands are loaded before anything is stored, so a result may take the place of
// an operand.
type pointwise struct {
	source
	f        *plan.Fused
	in, out  []operand // out are the stores', then the reductions'
	V        int
	reg      string // the type of registers
	accesses []*access
	loads    []load
	param    []string // by instruction: the field of its parameter
	store    bool     // results are stored
	of       string   // index of an operand's registers, where those of several steps are loaded at once
}

type load struct {
	mode
	*access      // nil if full or scalar
	before  bool // loaded once, before the points
}

// newPointwise declares the arguments of a group.
func newPointwise(f *plan.Fused, in, out []operand, V int, store, wide bool) *pointwise {
	k := &pointwise{f: f, in: in, out: out, V: V, reg: register(f.DType), store: store}
	k.wide = wide
	for i, x := range in {
		k.pointer("const "+ctype(x.dtype), fmt.Sprintf("in%d", i), x.value)
		l := load{mode: modeOf(f.Loads[i], x, V)}
		if a := f.Loads[i]; !a.Full() && !a.Scalar() {
			l.access = k.addAccess(a)
		}
		k.loads = append(k.loads, l)
	}
	for i := range f.Stores {
		if store {
			k.pointer(ctype(out[i].dtype), fmt.Sprintf("out%d", i), out[i].value)
		}
	}
	for i, c := range f.Consts {
		k.number(fmt.Sprintf("c%d", i), constant(f.DType, c))
	}
	k.param = make([]string, len(f.Code))
	for i, c := range f.Code {
		if op, ok := c.Op.(graph.Unary); ok && op.Fn.HasParam() {
			k.param[i] = fmt.Sprintf("a%d", i)
			k.number(k.param[i], op.A())
		}
	}
	return k
}

// number is an argument of the registers' type.
func (k *pointwise) number(name string, v float64) {
	switch k.reg {
	case "float":
		k.float(name, v)
	case "double":
		k.double(name, v)
	default:
		k.int(name, int(v))
	}
}

// points writes the text of V points from idx p on, in a block of its own; each is
// what follows the instructions of a point, with registers named r0, r1, ….
func (k *pointwise) points(indent string, each func(indent string)) {
	for i := range k.loads {
		if !k.loads[i].before {
			k.declare(i, indent, "")
			k.load(i, indent)
		}
	}
	k.compute(indent, each)
}

// compute is points without the loads.
func (k *pointwise) compute(indent string, each func(indent string)) {
	if k.store {
		for i := range k.f.Stores {
			k.line("%s%s y%d[%d];", indent, k.reg, i, k.V)
		}
	}
	k.line("%sUNROLL\n%[1]sfor (int j = 0; j < %d; j++) {", indent, k.V)
	k.registers(indent + "\t")
	if k.store {
		for i, r := range k.f.Stores {
			k.line("%s\ty%d[j] = r%d;", indent, i, r)
		}
	}
	if each != nil {
		each(indent + "\t")
	}
	k.line("%s}", indent)
	if k.store {
		for i := range k.f.Stores {
			k.write(i, indent)
		}
	}
}

// declare declares the registers of operand i, x<i>; of many steps, as [8], or of one.
func (k *pointwise) declare(i int, indent, steps string) {
	if k.loads[i].mode == singleMode {
		k.line("%s%s x%d%s;", indent, k.reg, i, steps)
		return
	}
	k.line("%s%s x%d%s[%d];", indent, k.reg, i, steps, k.V)
}

// load writes the lines that bring operand i to x<i>.
func (k *pointwise) load(i int, indent string) {
	l, x := k.loads[i], k.in[i]
	at, to := "p", fmt.Sprintf("x%d%s", i, k.of)
	if l.access != nil && l.mode != eachMode {
		at = fmt.Sprintf("o%d", i)
		k.offset(l.access, indent, at, "p")
	}
	if k.f.Loads[i].Scalar() {
		at = "0"
	}
	switch l.mode {
	case vectorMode:
		k.line("%s%s(%s, a.in%d + %s);", indent, k.loader(x.dtype, k.reg, k.V), to, i, at)
	case singleMode:
		k.line("%s%s = %s;", indent, to, loaded(x.dtype, k.reg, fmt.Sprintf("a.in%d[%s]", i, at)))
	default:
		k.line("%sUNROLL\n%[1]sfor (int j = 0; j < %d; j++) {", indent, k.V)
		at = "p + j"
		if l.access != nil {
			k.offset(l.access, indent+"\t", "o", at)
			at = "o"
		}
		k.line("%s\t%s[j] = %s;\n%[1]s}", indent, to, loaded(x.dtype, k.reg, fmt.Sprintf("a.in%d[%s]", i, at)))
	}
}

// registers writes the instructions of point j.
func (k *pointwise) registers(indent string) {
	n := 0
	next := func(x string) {
		k.line("%sconst %s r%d = %s;", indent, k.reg, n, x)
		n++
	}
	for i, l := range k.loads {
		of := k.of
		if l.before {
			of = ""
		}
		if l.mode == singleMode {
			next(fmt.Sprintf("x%d%s", i, of))
		} else {
			next(fmt.Sprintf("x%d%s[j]", i, of))
		}
	}
	for i := range k.f.Consts {
		next(fmt.Sprintf("a.c%d", i))
	}
	r := func(i int) string { return fmt.Sprintf("r%d", i) }
	for i, c := range k.f.Code {
		next(rounded(k.f.DType, expression(c.Op, k.reg, r(c.X), r(c.Y), r(c.Z), "a."+k.param[i])))
	}
}

// write writes the lines that store result i.
func (k *pointwise) write(i int, indent string) {
	x := k.out[i]
	if x.aligned && vectors(x.dtype, k.V) {
		k.line("%s%s(a.out%d + p, y%[3]d);", indent, k.storer(x.dtype, k.reg, k.V), i)
		return
	}
	k.line("%sUNROLL\n%[1]sfor (int j = 0; j < %[2]d; j++)\n%[1]s\ta.out%[3]d[p + j] = %[4]s;", indent, k.V, i, stored(x.dtype, k.reg, fmt.Sprintf("y%d[j]", i)))
}

// widest is the number of points that a thread does: 16 bytes of the narrowest of the
// full operands, no more than fit a divisor of n.
func widest(f *plan.Fused, in, out []operand, n int) int {
	v := 16 / max(f.DType.Size(), 2)
	if register(f.DType) == "float" {
		v = 4
	}
	for i, x := range in {
		if f.Loads[i].Full() && x.dtype == graph.BF16 {
			v = 8
		}
	}
	for i := range f.Stores {
		if out[i].dtype == graph.BF16 {
			v = 8
		}
	}
	for n%v != 0 {
		v /= 2
	}
	return v
}

// fused makes the kernels of a group.
func (m *making) fused(f *plan.Fused, in, out []operand) ([]Launch, error) {
	if len(f.Sums) > 0 {
		return m.reducing(f, in, out)
	}
	n := f.Dims.Len()
	if n == 0 {
		return nil, nil
	}
	k := newPointwise(f, in, out, widest(f, in, out, n), true, m.wideFor(n))
	k.int("n", n)
	k.line("KERNEL(NAME, %d, struct NAME_args) {", Block)
	k.line("\tconst idx p = ((idx)BID * %d + TID) * %d;\n\tif (p >= (idx)a.n)\n\t\treturn;", Block, k.V)
	k.points("\t", nil)
	k.line("}")
	l, err := k.launch("fused", blocks(n/k.V))
	return []Launch{l}, err
}

// convert copies an array, by way of the type of a cast: i64 between integers, float
// where that holds every value of both types, double otherwise.
func (m *making) convert() ([]Launch, error) {
	in, out := m.operands(m.s.In), m.operands(m.s.Out)
	narrow := func(d graph.DType) bool { return d == graph.F32 || d == graph.BF16 || d == graph.U8 }
	f := &plan.Fused{DType: graph.F64, Dims: out[0].dims, Loads: []plan.Access{{}}, Stores: []int{0}}
	switch x, y := in[0].dtype, out[0].dtype; {
	case !x.IsFloat() && !y.IsFloat():
		f.DType = graph.I64
	case narrow(x) && narrow(y) && y.IsFloat():
		f.DType = graph.F32
	}
	return m.fused(f, in, out)
}

// fill sets every element of an array to v.
func (m *making) fill(v float64) ([]Launch, error) {
	out := m.operands(m.s.Out)
	return m.fused(filling(out[0].dtype, out[0].dims, v), nil, out)
}

// filling is a group that stores a number.
func filling(d graph.DType, dims graph.Shape, v float64) *plan.Fused {
	return &plan.Fused{DType: d, Dims: dims, Consts: []float64{v}, Stores: []int{0}}
}
