package kernel

import (
	"fmt"
	"slices"

	"ebtrain/ddp/exec/plan"
)

// mode is how a thread, which does V neighbouring points, gets at an operand.
type mode uint8

const (
	vectorMode mode = iota // one load or store of V neighbours
	singleMode             // one element for all V points
	eachMode               // an element for each point
)

// access is how points find elements of an array; its dims and strides are arguments,
// so one text serves all arrays that are repeated along the same axes.
type access struct {
	plan.Access
	number int
}

// addAccess adds an access that is neither full nor scalar to the kernel's, with its
// arguments; equal ones are one.
func (k *pointwise) addAccess(a plan.Access) *access {
	for _, b := range k.accesses {
		if slices.Equal(a.Dims, b.Dims) && slices.Equal(a.Strides, b.Strides) {
			return b
		}
	}
	b := &access{a, len(k.accesses)}
	k.accesses = append(k.accesses, b)
	last := len(a.Dims) - 1
	for i := range a.Dims {
		if i > 0 {
			k.quot(fmt.Sprintf("d%d_%d", b.number, i), a.Dims[i])
		}
		if i < last && a.Strides[i] != 0 {
			k.int(fmt.Sprintf("s%d_%d", b.number, i), a.Strides[i])
		}
	}
	return b
}

// offset writes the lines that set the idx o to the element that point p reads.
func (k *pointwise) offset(a *access, indent, o, p string) {
	last := len(a.Dims) - 1
	k.line("%sidx %s;\n%s{\n%s\tidx q = %s;", indent, o, indent, indent, p)
	terms := ""
	for i := last; i > 0; i-- {
		k.line("%s\tconst idx t%d = QUOT(q, a.d%d_%d), r%[2]d = q - t%[2]d * (idx)a.d%[3]d_%[4]d.d;\n%[1]s\tq = t%[2]d;", indent, i, a.number, i)
		switch {
		case a.Strides[i] == 0:
		case i == last:
			terms += fmt.Sprintf(" + r%d", i)
		default:
			terms += fmt.Sprintf(" + r%d * (idx)a.s%d_%d", i, a.number, i)
		}
	}
	if a.Strides[0] != 0 {
		terms = fmt.Sprintf(" + q * (idx)a.s%d_0", a.number) + terms
	}
	k.line("%s\t%s = %s;\n%[1]s}", indent, o, terms[3:])
}

// modeOf is how threads of V points get at an operand.
func modeOf(a plan.Access, x operand, V int) mode {
	inner := func() bool { return a.Dims[len(a.Dims)-1]%V == 0 }
	switch {
	case a.Scalar() || V == 1 && !a.Full():
		return singleMode
	case !a.Full() && !inner():
		return eachMode
	case !a.Full() && a.Strides[len(a.Strides)-1] == 0:
		return singleMode
	case x.aligned && vectors(x.dtype, V):
		return vectorMode
	}
	return eachMode
}
