package graph

import (
	"fmt"
	"slices"
)

// ReduceFn is how a reduction combines elements.
type ReduceFn uint8

const (
	ReduceSum ReduceFn = iota + 1
	ReduceMax
)

func (f ReduceFn) String() string {
	if f == ReduceMax {
		return "max"
	}
	return "sum"
}

// Reduce combines the elements along the axes whose bit is set in Axes; those
// axes stay, with extent 1. Integers wrap around; the sum of nothing is 0.
type Reduce struct {
	Fn   ReduceFn
	Axes uint8
}

// Over says whether axis i is reduced.
func (o Reduce) Over(i int) bool { return o.Axes>>i&1 == 1 }

func (o Reduce) String() string {
	var axes []int
	for i := range MaxRank {
		if o.Over(i) {
			axes = append(axes, i)
		}
	}
	return fmt.Sprintf("reduce_%s{axes %v}", o.Fn, D(axes...))
}

func (o Reduce) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	if o.Fn != ReduceSum && o.Fn != ReduceMax {
		return nil, fmt.Errorf("no reduction has number %d", o.Fn)
	}
	if o.Axes>>in[0].Shape.Rank() != 0 {
		return nil, fmt.Errorf("an axis is not below the rank %d", in[0].Shape.Rank())
	}
	out := in[0]
	for i := range out.Shape.Rank() {
		if o.Over(i) {
			if o.Fn == ReduceMax && out.Shape.At(i) == 0 {
				return nil, fmt.Errorf("axis %d is empty: it has no maximum", i)
			}
			out.Shape = out.Shape.With(i, 1)
		}
	}
	return []Type{out}, nil
}

func (o Reduce) VJP(b *Builder, c Call, dout []ID) []ID {
	x := c.In[0]
	d := b.BroadcastTo(dout[0], b.Shape(x))
	if o.Fn == ReduceSum {
		return []ID{d}
	}
	hit := b.Equal(x, b.BroadcastTo(c.Out[0], b.Shape(x))) // ties share equally
	share := b.Div(hit, b.BroadcastTo(b.apply1(Reduce{ReduceSum, o.Axes}, hit), b.Shape(x)))
	return []ID{b.Mul(d, share)}
}

// reduce combines x along the axes, which stay with extent 1; with no axes it is x.
func (b *Builder) reduce(fn ReduceFn, x ID, axes []int) ID {
	if b.err != nil {
		return 0
	}
	o := Reduce{Fn: fn}
	for _, a := range axes {
		if a < 0 || a >= b.Shape(x).Rank() {
			b.Fail(fmt.Errorf("reduce_%s: axis %d of %v", fn, a, b.Shape(x)))
			return 0
		}
		o.Axes |= 1 << a
	}
	if len(axes) == 0 {
		return x
	}
	return b.apply1(o, x)
}

// SumKeep adds along the axes, which stay with extent 1.
func (b *Builder) SumKeep(x ID, axes ...int) ID { return b.reduce(ReduceSum, x, axes) }

// MaxKeep is the maximum along the axes, which stay with extent 1.
func (b *Builder) MaxKeep(x ID, axes ...int) ID { return b.reduce(ReduceMax, x, axes) }

// MeanKeep is the mean along the axes, which stay with extent 1.
func (b *Builder) MeanKeep(x ID, axes ...int) ID {
	sum := b.SumKeep(x, axes...)
	if b.err != nil {
		return 0
	}
	if b.Shape(x).Len() == 0 {
		if b.Shape(sum).Len() > 0 {
			b.Fail(fmt.Errorf("mean: the axes %v of %v hold no elements", axes, b.Shape(x)))
		}
		return sum
	}
	return b.Scale(sum, float64(b.Shape(sum).Len())/float64(b.Shape(x).Len()))
}

// Sum adds along the axes and removes them; with no axes it adds everything.
func (b *Builder) Sum(x ID, axes ...int) ID {
	axes = b.allAxes(x, axes)
	return b.dropAxes(b.SumKeep(x, axes...), axes)
}

// Mean is the mean along the axes, which are removed; with no axes, of everything.
func (b *Builder) Mean(x ID, axes ...int) ID {
	axes = b.allAxes(x, axes)
	return b.dropAxes(b.MeanKeep(x, axes...), axes)
}

// allAxes are the axes, or all of x's if none are given.
func (b *Builder) allAxes(x ID, axes []int) []int {
	if len(axes) > 0 {
		return axes
	}
	for i := range b.Shape(x).Rank() {
		axes = append(axes, i)
	}
	return axes
}

// dropAxes removes axes, which have extent 1.
func (b *Builder) dropAxes(x ID, axes []int) ID {
	if b.err != nil {
		return 0
	}
	var keep []int
	for i, d := range b.Shape(x).Slice() {
		if !slices.Contains(axes, i) {
			keep = append(keep, d)
		}
	}
	return b.Reshape(x, D(keep...))
}
