package ref

import (
	"ebtrain/collective"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// value is the content of one value of the graph: f if its type is
// floating-point, i if it is an integer, row-major, rounded to the type.
type value struct {
	typ graph.Type
	f   []float64
	i   []int64
}

func newValue(t graph.Type) *value {
	if t.DType.IsFloat() {
		return &value{typ: t, f: make([]float64, t.Shape.Len())}
	}
	return &value{typ: t, i: make([]int64, t.Shape.Len())}
}

// round rounds the elements to the type of the value.
func (v *value) round() {
	switch v.typ.DType {
	case graph.F32:
		for k, x := range v.f {
			v.f[k] = float64(float32(x))
		}
	case graph.BF16:
		for k, x := range v.f {
			v.f[k] = float64(collective.FromBF16(collective.ToBF16(float32(x))))
		}
	case graph.I32:
		for k, x := range v.i {
			v.i[k] = int64(int32(x))
		}
	case graph.U8:
		for k, x := range v.i {
			v.i[k] = int64(uint8(x))
		}
	}
}

// zero sets every element to 0.
func (v *value) zero() {
	clear(v.f)
	clear(v.i)
}

// load copies t, which has the same type.
func (v *value) load(t *exec.Tensor) {
	if v.typ.DType == graph.I64 { // a float64 does not hold every int64
		copy(v.i, t.I64())
		return
	}
	for k := range v.f {
		v.f[k] = t.At(k)
	}
	for k := range v.i {
		v.i[k] = int64(t.At(k))
	}
}

// store copies v to t, which has the same type.
func (v *value) store(t *exec.Tensor) {
	if v.typ.DType == graph.I64 {
		copy(t.I64(), v.i)
		return
	}
	for k, x := range v.f {
		t.SetAt(k, x)
	}
	for k, x := range v.i {
		t.SetAt(k, float64(x))
	}
}

// number is the Go type that elements are computed in.
type number interface{ float64 | int64 }

// elements are the elements of v as E, which must be the one v holds.
func elements[E number](v *value) []E {
	var e []E
	switch p := any(&e).(type) {
	case *[]float64:
		*p = v.f
	case *[]int64:
		*p = v.i
	}
	return e
}

// walk calls f with each index of s, in row-major order.
func walk(s graph.Shape, f func(at []int)) {
	at, dims := make([]int, s.Rank()), s.Slice()
	for range s.Len() {
		f(at)
		for a := len(at) - 1; a >= 0; a-- {
			if at[a]++; at[a] < dims[a] {
				break
			}
			at[a] = 0
		}
	}
}

// take sets y[at] = x[from(at)] for each index of y; from is an offset in x.
func take(y, x *value, from func(at []int) int) {
	k := 0
	walk(y.typ.Shape, func(at []int) {
		if j := from(at); y.f != nil {
			y.f[k] = x.f[j]
		} else {
			y.i[k] = x.i[j]
		}
		k++
	})
}

// put sets y[to(at)] = x[at] for each index of x; to is an offset in y.
func put(y, x *value, to func(at []int) int) {
	k := 0
	walk(x.typ.Shape, func(at []int) {
		if j := to(at); y.f != nil {
			y.f[j] = x.f[k]
		} else {
			y.i[j] = x.i[k]
		}
		k++
	})
}
