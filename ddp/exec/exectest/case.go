package exectest

import (
	"fmt"
	"hash/fnv"
	"math"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// Tolerance says how far a backend may be from the reference; see the package
// comment.
type Tolerance uint8

const (
	Exact Tolerance = iota + 1
	Near
	Sum
	Whole
	Drawn
)

// Case is a small graph that backends must compute as the reference does.
type Case struct {
	Name string
	Args []Arg
	// Build makes the graph of the arguments and returns its outputs.
	Build func(b *graph.Builder, x []graph.ID) []graph.ID
	Tol   Tolerance
	Terms int // the longest sum, where Tol is Sum
	// NoDiff marks a case whose arguments are no place for finite differences:
	// extreme values or ties.
	NoDiff bool
}

// Arg is an argument of a case.
type Arg struct {
	Shape graph.Shape
	DType graph.DType // 0: the floating-point type under test
	Fill  Fill
	Fixed bool // not to be differentiated
}

// Type is the argument's type where dt is under test.
func (a Arg) Type(dt graph.DType) graph.Type {
	if a.DType != 0 {
		dt = a.DType
	}
	return graph.Type{DType: dt, Shape: a.Shape}
}

// Fill sets the elements of an argument; n names the randomness.
type Fill func(dst []float64, n philox.Name)

// Normal is N(0, 1).
func Normal(dst []float64, n philox.Name) { n.Normal(dst) }

// Between is uniform on (lo, hi).
func Between(lo, hi float64) Fill {
	return func(dst []float64, n philox.Name) {
		n.Uniform(dst)
		for i, u := range dst {
			dst[i] = lo + (hi-lo)*u
		}
	}
}

// NoKink is uniform on ±(0.2, 1.5): away from 0, where many functions have a kink.
func NoKink(dst []float64, n philox.Name) {
	n.Uniform(dst)
	for i, u := range dst {
		dst[i] = math.Copysign(0.2+1.3*math.Abs(2*u-1), u-0.5)
	}
}

// Distinct is a random order of numbers ⅛ apart around 0: no two are close.
func Distinct(dst []float64, n philox.Name) {
	for i, p := range n.Perm(len(dst)) {
		dst[i] = (float64(p) - float64(len(dst)/2)) / 8
	}
}

// Below is a random integer in 0 … max−1.
func Below(max int) Fill {
	return func(dst []float64, n philox.Name) {
		for i := range dst {
			dst[i] = float64(n.Intn(i, max))
		}
	}
}

// List is the given numbers, repeated.
func List(v ...float64) Fill {
	return func(dst []float64, _ philox.Name) {
		for i := range dst {
			dst[i] = v[i%len(v)]
		}
	}
}

// Tensor makes the argument: its elements are a function of the names alone.
func (a Arg) Tensor(dt graph.DType, caseName string, arg int) *exec.Tensor {
	h := fnv.New64a()
	h.Write(fmt.Appendf(nil, "%s/%d", caseName, arg))
	v := make([]float64, a.Shape.Len())
	fill := a.Fill
	if fill == nil {
		fill = Normal
	}
	fill(v, philox.Name{Seed: h.Sum64(), Purpose: philox.Testing})
	t := exec.NewTensor(a.Type(dt))
	for i, x := range v {
		t.SetAt(i, x)
	}
	return t
}

// float is an argument of the type under test.
func float(dims ...int) Arg { return Arg{Shape: graph.D(dims...)} }

// floatOf is an argument of the type under test, filled by f.
func floatOf(f Fill, dims ...int) Arg { return Arg{Shape: graph.D(dims...), Fill: f} }

// intOf is an argument of an integer type.
func intOf(dt graph.DType, f Fill, dims ...int) Arg {
	return Arg{Shape: graph.D(dims...), DType: dt, Fill: f, Fixed: true}
}

// args is a list of arguments.
func args(a ...Arg) []Arg { return a }

// apply builds a case's graph of one op on all arguments.
func apply(op graph.Op) func(*graph.Builder, []graph.ID) []graph.ID {
	return func(b *graph.Builder, x []graph.ID) []graph.ID { return b.Apply(op, x...) }
}

// one builds a case's graph with one output.
func one(f func(b *graph.Builder, x []graph.ID) graph.ID) func(*graph.Builder, []graph.ID) []graph.ID {
	return func(b *graph.Builder, x []graph.ID) []graph.ID { return []graph.ID{f(b, x)} }
}

// Cases are all cases of single ops.
func Cases() []Case {
	var all []Case
	for _, part := range [][]Case{
		unaryCases(), binaryCases(), reduceCases(), shapeCases(), integerCases(), castCases(),
		convCases(), matmulCases(), poolCases(), resampleCases(), indexCases(), leafCases(),
	} {
		all = append(all, part...)
	}
	return all
}
