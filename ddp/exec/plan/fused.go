package plan

import (
	"fmt"
	"strings"

	"ebtrain/ddp/graph"
)

// Fused is a group of pointwise ops over one iteration space, in static
// single assignment form: registers 0 … len(Loads)−1 are the loads, the next
// len(Consts) the constants, then one for each instruction. A step's In are
// the loads' values, its Out the stores' values and then the reductions'. DType is
// that of registers and arithmetic; a load or store converts where its value's DType
// is another.
type Fused struct {
	DType  graph.DType
	Dims   graph.Shape // the iteration space, physical
	Loads  []Access
	Consts []float64
	Code   []Instr
	Stores []int // registers
	Sums   []Reduction
}

// Instr is an op on registers. Op is a graph.Unary, Binary or Select.
type Instr struct {
	Op      graph.Op
	X, Y, Z int
}

// Reduction combines a register over the part of the iteration space where
// the access of its result has stride 0.
type Reduction struct {
	Fn  graph.ReduceFn
	Reg int
	// Centred asks for the sum of (x − m)², where m is the mean of the x that go
	// into the same result. It must not be computed as if m were 0 in less than
	// float64.
	Centred bool
	Access
}

// Access maps the iteration space, with neighbouring axes joined where
// possible, to elements of a smaller array: Strides is 0 on axes along which
// the array is repeated (or reduced).
type Access struct{ Dims, Strides []int }

// Full says that the array has one element for each point, in order.
func (a Access) Full() bool { return len(a.Dims) == 0 || len(a.Dims) == 1 && a.Strides[0] == 1 }

// Scalar says that the array is one element.
func (a Access) Scalar() bool { return len(a.Dims) == 1 && a.Strides[0] == 0 }

// Offset is the element that point number at reads.
func (a Access) Offset(at int) (off int) {
	if len(a.Dims) == 0 {
		return at
	}
	for i := len(a.Dims) - 1; i >= 0; i-- {
		off += at % a.Dims[i] * a.Strides[i]
		at /= a.Dims[i]
	}
	return off
}

// NewAccess maps the space dims to an array of extents part, which are those of
// dims or 1.
func NewAccess(dims, part graph.Shape) Access {
	var a Access
	st := part.Strides()
	for i := range dims.Rank() {
		d, s := dims.At(i), st.At(i)
		if d == 1 {
			continue
		}
		if part.At(i) == 1 {
			s = 0
		}
		if k := len(a.Dims) - 1; k >= 0 && a.Strides[k] == s*d {
			a.Dims[k], a.Strides[k] = a.Dims[k]*d, s
			continue
		}
		a.Dims, a.Strides = append(a.Dims, d), append(a.Strides, s)
	}
	return a
}

// Registers is the number of registers.
func (f *Fused) Registers() int { return len(f.Loads) + len(f.Consts) + len(f.Code) }

func (f *Fused) String() string {
	return fmt.Sprintf("fused %v%v", f.DType, f.Dims)
}

// body is the group as text, with the given names of loads and results.
func (f *Fused) body(in, out []string) string {
	reg := append([]string(nil), in...)
	for i, a := range f.Loads {
		if !a.Full() {
			reg[i] += a.String()
		}
	}
	for _, c := range f.Consts {
		reg = append(reg, fmt.Sprint(c))
	}
	var b strings.Builder
	for i, c := range f.Code {
		name := fmt.Sprintf("t%d", i)
		args := []string{reg[c.X]}
		switch c.Op.(type) {
		case graph.Binary:
			args = append(args, reg[c.Y])
		case graph.Select:
			args = append(args, reg[c.Y], reg[c.Z])
		}
		fmt.Fprintf(&b, "\t\t%s = %s %s\n", name, c.Op, strings.Join(args, " "))
		reg = append(reg, name)
	}
	for i, r := range f.Stores {
		fmt.Fprintf(&b, "\t\t%s = %s\n", out[i], reg[r])
	}
	for i, r := range f.Sums {
		name := "reduce_" + r.Fn.String()
		if r.Centred {
			name = "centred_squares"
		}
		fmt.Fprintf(&b, "\t\t%s%v = %s %s\n", out[len(f.Stores)+i], r.Access, name, reg[r.Reg])
	}
	return b.String()
}

func (a Access) String() string {
	var b strings.Builder
	b.WriteByte('<')
	for i := range a.Dims {
		if i > 0 {
			b.WriteByte(',')
		}
		if a.Strides[i] == 0 {
			fmt.Fprintf(&b, "%d*", a.Dims[i])
			continue
		}
		fmt.Fprint(&b, a.Dims[i])
	}
	b.WriteByte('>')
	return b.String()
}
