package graph

import (
	"fmt"
	"strconv"
	"strings"

	"ebtrain/collective"
)

// DType is the type of one element.
type DType = collective.DType

const (
	F32  = collective.F32
	F64  = collective.F64
	BF16 = collective.BF16
	I32  = collective.I32
	I64  = collective.I64
	U8   = collective.U8
)

// MaxRank is the largest number of axes of a value.
const MaxRank = 6

// Dims is a short list of integers, one per axis: a shape, a permutation, the
// starts of a slice. It is comparable, so it can be part of an Op.
type Dims struct {
	n   uint8
	dim [MaxRank]int
}

// Shape is the extent of each axis; the empty Shape is a scalar.
type Shape = Dims

// D makes Dims from at most MaxRank integers.
func D(dims ...int) Dims {
	if len(dims) > MaxRank {
		panic(fmt.Sprintf("graph: %d axes, at most %d are possible", len(dims), MaxRank))
	}
	d := Dims{n: uint8(len(dims))}
	copy(d.dim[:], dims)
	return d
}

// Rank is the number of axes.
func (d Dims) Rank() int { return int(d.n) }

// At is the entry of axis i.
func (d Dims) At(i int) int {
	if i < 0 || i >= int(d.n) {
		panic(fmt.Sprintf("graph: axis %d of %v", i, d))
	}
	return d.dim[i]
}

// With is d with the entry of axis i replaced by v.
func (d Dims) With(i, v int) Dims {
	d.At(i)
	d.dim[i] = v
	return d
}

// Slice is the entries as a new slice.
func (d Dims) Slice() []int { return append([]int(nil), d.dim[:d.n]...) }

// Len is the number of elements of a tensor of this shape: the product of the
// extents, 1 for a scalar.
func (d Dims) Len() int {
	n := 1
	for _, v := range d.dim[:d.n] {
		n *= v
	}
	return n
}

// Strides are the row-major strides, in elements.
func (d Dims) Strides() Dims {
	s, step := d, 1
	for i := int(d.n) - 1; i >= 0; i-- {
		s.dim[i] = step
		step *= d.dim[i]
	}
	return s
}

// fill is Dims of rank n with every entry v.
func fill(n, v int) Dims {
	d := Dims{n: uint8(n)}
	for i := range n {
		d.dim[i] = v
	}
	return d
}

func (d Dims) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, v := range d.dim[:d.n] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(v))
	}
	b.WriteByte(']')
	return b.String()
}

// GoString makes Dims readable in digests and dumps.
func (d Dims) GoString() string { return d.String() }

// Type is the type of a value: element type and static shape.
type Type struct {
	DType DType
	Shape Shape
}

// T makes a Type.
func T(dt DType, dims ...int) Type { return Type{dt, D(dims...)} }

// Bytes is the size of a value of this type.
func (t Type) Bytes() int { return t.Shape.Len() * t.DType.Size() }

// maxElements bounds the elements of a value, so that sizes in bytes never
// overflow.
const maxElements = 1 << 48

// check says what is wrong with a type, if anything.
func (t Type) check() error {
	if t.DType < F32 || t.DType > U8 {
		return fmt.Errorf("no element type has number %d", t.DType)
	}
	n := 1
	for _, v := range t.Shape.dim[:t.Shape.n] {
		if v < 0 {
			return fmt.Errorf("the shape %v has a negative extent", t.Shape)
		}
		if v > 0 && n > maxElements/v {
			return fmt.Errorf("the shape %v has more than 2^48 elements", t.Shape)
		}
		n *= max(v, 1)
	}
	return nil
}

func (t Type) String() string { return t.DType.String() + t.Shape.String() }
